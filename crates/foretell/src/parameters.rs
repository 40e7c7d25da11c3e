//! Parameters are declared once, with their meaning, for files, flags and keywords.

/// Declares parameters and optional changes to them from one list of fields. The literal after `=`
/// is the value of a flag that is given without one.
macro_rules! parameters {
    (
        $(#[$params_doc:meta])* $params:ident, $(#[$overrides_doc:meta])* $overrides:ident, $heading:literal,
        $(#[doc = $doc:literal] $(#[$attribute:meta])* $name:ident: $type:ty $(= $missing:literal)?,)*
    ) => {
        $(#[$params_doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $params { $(#[doc = $doc] $(#[$attribute])* pub $name: $type,)* }

        impl $params {
            /// Every parameter and what it means.
            pub const FIELDS: &[(&str, &str)] = &[$((stringify!($name), $doc.trim_ascii_start()),)*];
        }

        $(#[$overrides_doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[cfg_attr(feature = "clap", derive(clap::Args))]
        pub struct $overrides { $(#[doc = $doc] $(#[$attribute])* #[cfg_attr(feature = "clap", arg(long, help_heading = $heading $(, num_args = 0..=1, require_equals = true, default_missing_value = $missing)?))] pub $name: Option<$type>,)* }

        impl $overrides {
            /// The preset with these changes.
            pub fn apply(&self, mut params: $params) -> $params {
                $(if let Some(value) = self.$name.clone() { params.$name = value; })*
                params
            }
        }
    };
}
pub(crate) use parameters;
