//! The ways to misbehave, and where the chosen one stands in the component.

/// What stands in the component's data before the two digits of its mode.
pub const MARKER: &[u8] = b"runwarden-hostile-mode=";

/// The marker and the digits. A test replaces the digits in the finished component.
static CHOSEN: [u8; 25] = *b"runwarden-hostile-mode=00";

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $digits:literal,)+) => {
        /// A way to misbehave. Functions that the mode does not name behave well.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Mode {
            $($(#[$doc])* $name = $digits,)+
        }

        impl Mode {
            /// Every mode.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

modes! {
    /// A small valid policy.
    Honest = 0,
    /// `describe` never ends.
    DescribeLoops = 1,
    /// `describe` takes memory without end.
    DescribeTakesMemory = 2,
    /// `describe` panics with a message.
    DescribePanics = 3,
    /// `describe` calls itself without end.
    DescribeRecurses = 4,
    /// The summary has megabytes.
    DescribeIsEnormous = 5,
    /// A descriptor with many problems at once.
    DescribeHasProblems = 6,
    /// A parameter's default is no JSON.
    DescribeIsNoJson = 7,
    /// `describe` logs without measure and then answers well.
    DescribeFloodsLog = 8,
    /// A parameter's default is nested a thousand deep.
    DescribeNestsDeep = 9,
    /// As many statuses as the answer's limit lets through.
    DescribeHasManyStatuses = 10,
    /// Words that are none: same-status rule, field kind, cascade.
    DescribeSpeaksUnknownWords = 11,
    /// A critical extension that no host knows.
    DescribeIsCritical = 12,
    /// `describe` panics with a message larger than any answer may be.
    DescribePanicsAtLength = 13,
    /// Names with escape sequences for terminals.
    DescribePaintsTerminals = 14,
    /// `describe` logs one line larger than any answer may be and then answers well.
    DescribeLogsAtLength = 15,
    /// `evaluate` never ends.
    GuardLoops = 20,
    /// `evaluate` panics.
    GuardPanics = 21,
    /// `evaluate` takes memory without end.
    GuardTakesMemory = 22,
    /// `evaluate` reports a fault of its own.
    GuardFaults = 23,
    /// `evaluate` refuses with a code.
    GuardRefuses = 24,
    /// `evaluate` answers with a critical extension that no host knows.
    GuardIsCritical = 25,
    /// `evaluate` refuses and tells how often it was called, as far as it can remember.
    GuardCounts = 26,
    /// `evaluate` admits and gives a code all the same.
    GuardContradicts = 27,
    /// `evaluate` refuses with a code that is none, with an escape sequence.
    GuardCodeIsNone = 28,
    /// `evaluate` refuses without a code.
    GuardGivesNoCode = 29,
    /// `verdict` answers an edge that is not declared.
    VerdictUndeclaredEdge = 40,
    /// `verdict` answers a reason code that is not declared.
    VerdictUndeclaredCode = 41,
    /// `verdict` panics.
    VerdictPanics = 42,
    /// `verdict` never ends.
    VerdictLoops = 43,
    /// `verdict` patches a field that is not declared.
    VerdictUndeclaredField = 44,
    /// `verdict` patches a field with what is no JSON.
    VerdictIsNoJson = 45,
    /// `verdict` answers well, and differs from the table.
    VerdictDiffers = 46,
    /// `verdict` patches a number with a text.
    VerdictWrongKind = 47,
    /// `verdict` patches the exit code that the host observed.
    VerdictOverwritesExit = 48,
    /// `verdict` wants another attempt in the past.
    VerdictRetriesInThePast = 49,
    /// `verdict` reports a fault of its own.
    VerdictFaults = 50,
    /// `verdict` answers an edge that only the guard may admit.
    VerdictGuardedEdge = 51,
    /// `verdict` answers with a critical extension that no host knows.
    VerdictIsCritical = 52,
    /// `verdict` patches a field with JSON nested a thousand deep.
    VerdictNestsDeep = 53,
    /// `verdict` answers an edge that is for operators alone.
    VerdictOperatorEdge = 54,
    /// `verdict` answers well that what exited with 0 is spoiled.
    VerdictSpoils = 55,
    /// `verdict` answers well and tells what it was told of stops and attempts.
    VerdictTells = 56,
    /// `assess` answers a level that is none.
    HealthUnknownLevel = 60,
    /// `assess` answers with a critical extension that no host knows.
    HealthIsCritical = 61,
    /// `assess` panics.
    HealthPanics = 62,
    /// `plan` never ends.
    PlanLoops = 70,
    /// `plan` takes memory without end.
    PlanTakesMemory = 71,
    /// `plan` panics.
    PlanPanics = 72,
    /// `plan` calls itself without end.
    PlanRecurses = 73,
    /// `plan` answers a million dispatches.
    PlanAnswersAMillion = 74,
    /// `plan` answers one dispatch more than is admitted.
    PlanAnswersTooMany = 75,
    /// `plan` names a destination that its binding has not.
    PlanNamesAnother = 76,
    /// `plan` answers a body of megabytes.
    PlanIsEnormous = 77,
    /// `plan` answers a body without a byte.
    PlanBodyIsEmpty = 78,
    /// `plan` answers two lines where a file takes one.
    PlanBodyIsTwoLines = 79,
    /// `plan` wants a dispatch to be late before its event.
    PlanDeadlineIsPast = 80,
    /// `plan` wants a dispatch to wait until the end of time.
    PlanDeadlineIsNever = 81,
    /// `plan` gives two dispatches one key.
    PlanRepeatsAKey = 82,
    /// `plan` gives a dispatch a key that looks like another binding's.
    PlanForgesAKey = 83,
    /// `plan` gives a dispatch the key that another has by its place.
    PlanTakesAPlace = 84,
    /// `plan` reports a fault of its own.
    PlanFaults = 85,
    /// `plan` answers with a critical extension that no host knows.
    PlanIsCritical = 86,
    /// `plan` tells what it was told.
    PlanTells = 87,
    /// `describe` of the handler names a transport that is none, and more.
    HandlerHasProblems = 88,
    /// `describe` of the handler never ends.
    HandlerLoops = 89,
    /// `describe` of the handler has a default that is no JSON.
    HandlerIsNoJson = 90,
}

/// The mode that stands in the component.
pub(crate) fn current() -> Mode {
    // SAFETY: the pointer is that of a static. Read volatile, because the compiler must not know what stands there.
    let chosen = unsafe { std::ptr::read_volatile(&raw const CHOSEN) };
    let [.., tens, ones] = chosen;
    let number = tens
        .wrapping_sub(b'0')
        .wrapping_mul(10)
        .wrapping_add(ones.wrapping_sub(b'0'));
    let found = Mode::ALL.iter().find(|mode| **mode as u8 == number);
    *found.expect("a test writes the digits of a mode")
}
