/* The bindings want a sign that somebody adds the types of wit/ to the component: `wasm-tools component embed` does. */
void __component_type_object_force_link_component(void);
void __component_type_object_force_link_component(void) {}
