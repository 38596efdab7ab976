//! The one line that turns a type into a component.

/// Exports a type's parts: `export!(Session: policy, health);`.
///
/// The parts are `policy`, `guard`, `execution`, `health` and `migrate` for a policy, and `notifier` for a handler.
/// Only what is named is exported. The functions exist for `wasm32` alone; elsewhere the line checks that the
/// type implements what it names.
#[macro_export]
macro_rules! export {
    ($type:ident: $($part:ident),+ $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(
            missing_docs,
            unreachable_pub,
            unused_qualifications,
            reason = "expanded from generated bindings"
        )]
        const _: () = {
            $($crate::__export_part!($part $type);)+
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            $($crate::__check_part!($part $type);)+
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_part {
    (policy $type:ident) => {
        impl $crate::bindings::lifecycle_policy::exports::runwarden::policy::lifecycle::Guest
            for $type
        {
            fn describe() -> $crate::Descriptor {
                $crate::report_panics();
                <$type as $crate::Policy>::describe()
            }
        }
        $crate::bindings::lifecycle_policy::export!(
            $type with_types_in $crate::bindings::lifecycle_policy
        );
    };
    (guard $type:ident) => {
        impl $crate::bindings::guard_policy::exports::runwarden::policy::guard::Guest for $type {
            fn evaluate(request: $crate::Request) -> Result<$crate::Decision, $crate::Fault> {
                $crate::report_panics();
                <$type as $crate::Guard>::evaluate(request)
            }
        }
        $crate::bindings::guard_policy::export!(
            $type with_types_in $crate::bindings::guard_policy
        );
    };
    (execution $type:ident) => {
        impl $crate::bindings::execution_policy::exports::runwarden::policy::execution::Guest
            for $type
        {
            fn verdict(ending: $crate::Ending) -> Result<$crate::Judgement, $crate::Fault> {
                $crate::report_panics();
                <$type as $crate::Execution>::verdict(ending)
            }
        }
        $crate::bindings::execution_policy::export!(
            $type with_types_in $crate::bindings::execution_policy
        );
    };
    (health $type:ident) => {
        impl $crate::bindings::health_policy::exports::runwarden::policy::health::Guest for $type {
            fn assess(
                observation: $crate::Observation,
            ) -> Result<$crate::Assessment, $crate::Fault> {
                $crate::report_panics();
                <$type as $crate::Health>::assess(observation)
            }
        }
        $crate::bindings::health_policy::export!(
            $type with_types_in $crate::bindings::health_policy
        );
    };
    (migrate $type:ident) => {
        impl $crate::bindings::migrate_policy::exports::runwarden::policy::migrate::Guest
            for $type
        {
            fn map(
                entity: $crate::Entity,
                from_name: String,
                from_version: String,
                surroundings: $crate::Surroundings,
            ) -> Result<$crate::Mapping, $crate::Fault> {
                $crate::report_panics();
                <$type as $crate::Migrate>::map(entity, from_name, from_version, surroundings)
            }
        }
        $crate::bindings::migrate_policy::export!(
            $type with_types_in $crate::bindings::migrate_policy
        );
    };
    (notifier $type:ident) => {
        impl $crate::bindings::handler::exports::runwarden::notify::notifier::Guest for $type {
            fn describe() -> $crate::HandlerDescriptor {
                $crate::report_panics();
                <$type as $crate::Notifier>::describe()
            }

            fn plan(
                envelope: $crate::Envelope,
                binding: $crate::Binding,
            ) -> Result<Vec<$crate::PlannedDispatch>, $crate::Fault> {
                $crate::report_panics();
                <$type as $crate::Notifier>::plan(envelope, binding)
            }
        }
        $crate::bindings::handler::export!($type with_types_in $crate::bindings::handler);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __check_part {
    (policy $type:ident) => {
        $crate::__check_trait!($type Policy);
    };
    (guard $type:ident) => {
        $crate::__check_trait!($type Guard);
    };
    (execution $type:ident) => {
        $crate::__check_trait!($type Execution);
    };
    (health $type:ident) => {
        $crate::__check_trait!($type Health);
    };
    (migrate $type:ident) => {
        $crate::__check_trait!($type Migrate);
    };
    (notifier $type:ident) => {
        $crate::__check_trait!($type Notifier);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __check_trait {
    ($type:ident $part:ident) => {
        const _: fn() = || {
            fn implements<T: $crate::$part>() {}
            implements::<$type>();
        };
    };
}
