//! `preset`: lists, shows, publishes and takes away the templates of a farm.

use crate::args::farm::ListArgs;
use crate::args::preset::{PresetCommand, PublishArgs, RemoveArgs, ShowArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::table::{bytes, printable, table};
use crate::{json, small_file, template};
use tessera_protocol::client::{Request, Response};
use tessera_protocol::limits::PRESET_BYTES_MAX;
use tessera_protocol::preset::{self, Preset};
use tessera_protocol::utc::utc;

/// What a scene begins with that is the name of a preset.
const PREFIX: &str = "preset:";

/// `tessera preset ...`.
pub(crate) async fn run(command: PresetCommand) -> Result<Status, CliError> {
    match command {
        PresetCommand::List(args) => list(args).await,
        PresetCommand::Show(args) => show(args).await,
        PresetCommand::Publish(args) => publish(args).await,
        PresetCommand::Remove(args) => remove(args).await,
    }
}

/// The name of a preset where a scene or a template could be.
pub(super) fn named(path: &std::path::Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// Asks for a preset.
pub(super) async fn get(farm: &Farm, name: &str) -> Result<Preset, CliError> {
    match farm.ask(&Request::Preset { name: name.to_owned() }).await? {
        Response::Preset(preset) => Ok(*preset),
        _ => Err(unexpected()),
    }
}

async fn list(args: ListArgs) -> Result<Status, CliError> {
    let Response::Presets(presets) = Farm::of(&args.farm)?.ask(&Request::Presets).await? else {
        return Err(unexpected());
    };
    if args.json {
        json::print(&presets)?;
        return Ok(Status::Done);
    }
    if presets.is_empty() {
        eprintln!("there are no presets; `tessera preset publish NAME FILE` makes one");
        return Ok(Status::Done);
    }
    let rows: Vec<Vec<String>> = presets
        .iter()
        .map(|preset| {
            let (name, by) = (printable(&preset.name), printable(&preset.by));
            vec![name, bytes(preset.bytes.into()), by, utc(preset.at)]
        })
        .collect();
    json::line(table(&["NAME", "SIZE", "BY", "SINCE"], &rows).trim_end())?;
    Ok(Status::Done)
}

async fn show(args: ShowArgs) -> Result<Status, CliError> {
    let preset = get(&Farm::of(&args.farm)?, &args.name).await?;
    let lines = preset.text.lines().map(printable);
    json::line(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(Status::Done)
}

async fn publish(args: PublishArgs) -> Result<Status, CliError> {
    let about = |error: CliError| error.context(format!("`{}`", args.file.display()));
    let text = small_file::read(&args.file, PRESET_BYTES_MAX as u64)
        .map_err(|error| about(CliError::of_file(error)))?;
    template::outline(&text).map_err(|error| about(error.into()))?;
    let usage = |problem| CliError::new(Status::Usage, problem);
    preset::check(&args.name, Some(&text)).map_err(usage)?;
    let request = Request::SetPreset { name: args.name.clone(), text: Some(text) };
    done(&Farm::of(&args.farm)?, &request).await?;
    eprintln!("published; `tessera submit preset:{}` uses it", args.name);
    Ok(Status::Done)
}

async fn remove(args: RemoveArgs) -> Result<Status, CliError> {
    let request = Request::SetPreset { name: args.name.clone(), text: None };
    done(&Farm::of(&args.farm)?, &request).await?;
    eprintln!("`{}` is taken away", printable(&args.name));
    Ok(Status::Done)
}

async fn done(farm: &Farm, request: &Request) -> Result<(), CliError> {
    match farm.ask(request).await? {
        Response::Done => Ok(()),
        _ => Err(unexpected()),
    }
}
