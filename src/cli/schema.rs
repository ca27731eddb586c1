//! `fitout schema NAME`: the JSON Schemas of the files that users write, and of the lines that programs read.

use super::{Exit, Global, Ui, VerbResult};

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The schemas are draft-07, without what taplo and the TOML extensions of editors do not know. `fitout init` \
    writes them to .fitout/ beside mesh.toml, whose first line names them; after an upgrade of fitout write them again:\n\
    \n    fitout schema mesh > .fitout/mesh.schema.json"
)]
pub struct Args {
    /// Which
    #[arg(value_enum)]
    name: Name,
}

/// The schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// mesh.toml
    Mesh,
    /// profiles/NAME.toml
    Profile,
    /// overlays/NAME/overlay.toml
    Overlay,
    /// A line of `--message-format json`
    Message,
}

impl Name {
    /// Those of the files that users write.
    pub const OF_FILES: [Name; 3] = [Name::Mesh, Name::Profile, Name::Overlay];

    /// The schema.
    pub fn text(self) -> &'static str {
        match self {
            Name::Mesh => include_str!("../../schemas/mesh.schema.json"),
            Name::Profile => include_str!("../../schemas/profile.schema.json"),
            Name::Overlay => include_str!("../../schemas/overlay.schema.json"),
            Name::Message => include_str!("../../schemas/message.schema.json"),
        }
    }

    /// Name of its file.
    pub fn file(self) -> &'static str {
        match self {
            Name::Mesh => "mesh.schema.json",
            Name::Profile => "profile.schema.json",
            Name::Overlay => "overlay.schema.json",
            Name::Message => "message.schema.json",
        }
    }
}

/// Prints the schema, whatever the format: it is JSON itself.
///
/// # Errors
/// None.
pub fn run(args: &Args, _global: &Global, ui: &Ui) -> VerbResult {
    ui.document(args.name.text());
    Ok(Exit::Clean)
}
