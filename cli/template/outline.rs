//! What a template takes, for those who ask before they set anything.

use super::error::TemplateError;
use super::file::{self, Parameter};
use super::parameter::text_of;
use tessera_http::{TemplateOutline, TemplateParameter};

/// Says what a template takes. Its jobs are not made.
pub(crate) fn outline(text: &str) -> Result<TemplateOutline, TemplateError> {
    let file = file::read(text)?;
    Ok(TemplateOutline {
        parameters: file.parameters.iter().map(|(name, of)| parameter(name, of)).collect(),
        name: file.name,
        description: file.description,
        files: Vec::new(),
        problem: None,
    })
}

fn parameter(name: &str, of: &Parameter) -> TemplateParameter {
    let number = |value: &Option<toml::Value>| {
        let value = value.as_ref()?;
        value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
    };
    let choices = of.choices.iter().flatten().filter_map(|value| of.kind.text(value));
    TemplateParameter {
        name: name.to_owned(),
        kind: of.kind.name().to_owned(),
        list: of.list,
        default: of.default.as_ref().and_then(|value| text_of(of, value)),
        min: number(&of.min),
        max: number(&of.max),
        choices: choices.collect(),
        help: of.help.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_has_what_can_be_set() {
        let text = "tessera = 1\nname = 'film'\ndescription = 'a film'\n\
            [parameters.spp]\ntype = 'integer'\ndefault = 64\nmin = 1\nmax = 4096\n\
            help = 'samples'\n\
            [parameters.seeds]\ntype = 'integer'\nlist = true\ndefault = '1-3'\n\
            [parameters.look]\ntype = 'text'\nchoices = ['dawn', 'noon']\n\
            [parameters.scene]\ntype = 'file'\n\
            [[steps]]\nname = 'a'\nrender = '{scene}'\n";
        let seen = outline(text).unwrap();
        assert_eq!((seen.name.as_str(), seen.description.as_str()), ("film", "a film"));
        let of = |name: &str| seen.parameters.iter().find(|of| of.name == name).unwrap();
        let spp = of("spp");
        assert_eq!((spp.kind.as_str(), spp.default.as_deref()), ("integer", Some("64")));
        assert_eq!((spp.min, spp.max, spp.help.as_str()), (Some(1.0), Some(4096.0), "samples"));
        let seeds = of("seeds");
        assert_eq!((seeds.list, seeds.default.as_deref()), (true, Some("1,2,3")));
        assert_eq!(of("look").choices, ["dawn", "noon"]);
        assert_eq!((of("scene").kind.as_str(), &of("scene").default), ("file", &None));
        assert!(outline("tessera = 1").is_err());
    }
}
