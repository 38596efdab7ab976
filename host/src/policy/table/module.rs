//! The core module of a table: its memory, and where in it the descriptor stands.

use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, Encode as _, ExportKind, ExportSection, Function, FunctionSection,
    MemorySection, MemoryType, Module, TypeSection, ValType,
};

use super::layout::Image;
use crate::model::Descriptor;

/// A page of linear memory.
const PAGE_BYTES: usize = 65_536;

/// The number of the section that holds a core module.
const MODULE_SECTION: u8 = 1;

/// What the frame asks a core module for, with the types of the functions, in this order.
const DESCRIBE: &str = "runwarden:policy/lifecycle@0.1.0#describe";
const AFTER_DESCRIBE: &str = "cabi_post_runwarden:policy/lifecycle@0.1.0#describe";
const ALLOCATE: &str = "cabi_realloc";
const MEMORY: &str = "memory";

/// A component's section with a core module that describes this.
pub(super) fn section(descriptor: &Descriptor) -> Vec<u8> {
    let mut image = Image::default();
    let address = image.place(descriptor);
    let module = module(address, &image.into_bytes());
    let mut section = vec![MODULE_SECTION];
    module.encode(&mut section);
    section
}

fn module(address: usize, image: &[u8]) -> Vec<u8> {
    let (mut types, mut functions, mut exports) = (TypeSection::new(), FunctionSection::new(), ExportSection::new());
    let mut code = CodeSection::new();
    let mut function = |name: &str, [parameters, results]: [usize; 2], body: &dyn Fn(&mut Function)| {
        let index = functions.len();
        types
            .ty()
            .function(vec![ValType::I32; parameters], vec![ValType::I32; results]);
        functions.function(index);
        exports.export(name, ExportKind::Func, index);
        let mut function = Function::new([]);
        body(&mut function);
        function.instructions().end();
        code.function(&function);
    };
    let address = i32::try_from(address).expect("the descriptor is the first thing in the image");
    function(DESCRIBE, [0, 1], &|body| {
        body.instructions().i32_const(address);
    });
    // What was answered stays where it is: there is nothing to free.
    function(AFTER_DESCRIBE, [1, 0], &|_| {});
    // Nothing is ever passed in, so nobody asks for room.
    function(ALLOCATE, [4, 1], &|body| {
        body.instructions().unreachable();
    });
    exports.export(MEMORY, ExportKind::Memory, 0);
    let pages = image.len().div_ceil(PAGE_BYTES) as u64;
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: pages,
        maximum: Some(pages),
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(0), image.iter().copied());
    let mut module = Module::new();
    module
        .section(&types)
        .section(&functions)
        .section(&memories)
        .section(&exports);
    module.section(&code).section(&data);
    module.finish()
}
