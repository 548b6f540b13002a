//! Textures: the use of images, their decoding within limits, and the texel buffer. Levels are made
//! in mipmap.rs; kernels filter.

pub(crate) mod mipmap;
mod srgb;
pub(crate) mod texel;

use crate::document::Document;
use crate::document::source::Source;
use crate::error::SceneError;
use crate::image_file::{self, Header};
use crate::report::TextureReport;
use crate::report::warning::Warnings;
use crate::texture::mipmap::Mean;
use gltf::json::texture::{MagFilter, MinFilter, Sampler, WrappingMode};
use gltf::json::validation::Checked;
use rayon::prelude::*;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tessera_layout::{Array, NONE, TexelFormat, Texture, Wrap};

/// Every texture begins at a multiple of this (see [`Texture::offset`]).
const TEXEL_ALIGNMENT: usize = 16;

/// Extensions that name an image of another format, in the order of preference: WebP loses less
/// than block formats.
const IMAGE_EXTENSIONS: [&str; 2] = ["EXT_texture_webp", "KHR_texture_basisu"];

/// Their JSON object in a texture.
#[derive(Deserialize)]
struct ImageJson {
    source: Option<usize>,
}

/// How a material reads a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TextureUse {
    /// Colour, sRGB-encoded.
    Color,
    /// Colour whose alpha is its coverage.
    CoveringColor,
    /// Numbers, linear.
    Data,
}

/// Textures that materials request, in the order of the requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextureTable {
    slots: BTreeMap<(usize, TextureUse), u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    texture: usize,
    image: usize,
    usage: TextureUse,
}

/// Decoded textures.
#[derive(Debug, Default)]
pub(crate) struct TextureSet {
    pub(crate) textures: Array<Texture>,
    pub(crate) texels: Array<u8>,
    pub(crate) reports: Vec<TextureReport>,
}

/// An image to decode.
struct Job<'a> {
    path: String,
    bytes: Cow<'a, [u8]>,
    header: Header,
    format: TexelFormat,
    mean: Mean,
    offset: usize,
    length: usize,
}

impl TextureTable {
    /// Returns the number of `texture` of the file in the result, or [`NONE`] if it has no image
    /// that is read.
    pub(crate) fn request(
        &mut self,
        document: &Document,
        texture: usize,
        usage: TextureUse,
        path: &str,
        warnings: &mut Warnings,
    ) -> Result<u32, SceneError> {
        let json =
            document.at(&document.root.textures, texture, &format!("{path}.index"), "textures")?;
        let extensions = json.extensions.as_ref().map(|extensions| &extensions.others);
        // An extension's image is for programs that can read it, and the other image is its
        // fallback.
        let mut image = json.source.value();
        for name in IMAGE_EXTENSIONS.into_iter().rev() {
            let json: Option<ImageJson> =
                document.extension(extensions, name, &format!("textures[{texture}]"))?;
            image = json.and_then(|json| json.source).unwrap_or(image);
        }
        if image == u32::MAX as usize {
            let what = "has no PNG, JPEG, WebP or KTX2 image; its material uses its plain factors";
            warnings.add(format!("textures[{texture}] {what}"));
            return Ok(NONE);
        }
        document.at(
            &document.root.images,
            image,
            &format!("textures[{texture}].source"),
            "images",
        )?;
        if let Some(sampler) = json.sampler {
            let place = format!("textures[{texture}].sampler");
            document.item(&document.root.samplers, sampler, &place, "samplers")?;
        }
        let next = self.entries.len() as u32;
        let slot = *self.slots.entry((texture, usage)).or_insert(next);
        if slot == next {
            self.entries.push(Entry { texture, image, usage });
        }
        Ok(slot)
    }

    /// Decodes the requested textures in parallel, after a check of all headers against the limits.
    pub(crate) fn decode(
        &self,
        document: &Document,
        source: &Source,
    ) -> Result<TextureSet, SceneError> {
        let mut numbers: BTreeMap<(usize, TextureUse), usize> = BTreeMap::new();
        let mut jobs: Vec<Job> = Vec::new();
        let mut length = 0usize;
        for entry in &self.entries {
            if numbers.contains_key(&(entry.image, entry.usage)) {
                continue;
            }
            let job = plan(document, source, entry, length)?;
            length = job.offset + job.length;
            numbers.insert((entry.image, entry.usage), jobs.len());
            jobs.push(job);
        }
        let mut texels = vec![0u8; length];
        let mut rest = texels.as_mut_slice();
        let mut targets = Vec::with_capacity(jobs.len());
        let mut at = 0;
        for job in &jobs {
            let (_, tail) = rest.split_at_mut(job.offset - at);
            let (target, tail) = tail.split_at_mut(job.length);
            at = job.offset + job.length;
            rest = tail;
            targets.push(target);
        }
        jobs.par_iter().zip(targets).try_for_each(|(job, target)| {
            let size = (job.header.width, job.header.height);
            let first = job.format.bytes() * size.0 as usize * size.1 as usize;
            image_file::decode(&job.bytes, &job.header, job.format, &mut target[..first]).map_err(
                |problem| SceneError::Image {
                    file: document.file.clone(),
                    path: job.path.clone(),
                    problem,
                },
            )?;
            mipmap::fill_levels(target, size, job.format, job.mean);
            Ok(())
        })?;
        let (mut textures, mut reports) = (Vec::new(), Vec::new());
        let mut counted = vec![false; jobs.len()];
        for entry in &self.entries {
            let number = numbers[&(entry.image, entry.usage)];
            textures.push(describe(document, entry, &jobs[number]));
            let is_counted = std::mem::replace(&mut counted[number], true);
            let bytes = if is_counted { 0 } else { jobs[number].length as u64 };
            reports.push(report(document, entry, &jobs[number], bytes));
        }
        Ok(TextureSet { textures: textures.into(), texels: texels.into(), reports })
    }
}

fn plan<'a>(
    document: &'a Document,
    source: &Source,
    entry: &Entry,
    length: usize,
) -> Result<Job<'a>, SceneError> {
    let path = format!("images[{}]", entry.image);
    let wrong =
        |problem| SceneError::Image { file: document.file.clone(), path: path.clone(), problem };
    let image = &document.root.images[entry.image];
    let bytes = match (&image.buffer_view, &image.uri) {
        (Some(view), _) => {
            Cow::Borrowed(document.view(view.value(), &format!("{path}.bufferView"))?)
        }
        (None, Some(uri)) => Cow::Owned(document.resolve(source, uri, &format!("{path}.uri"))?),
        (None, None) => {
            return Err(wrong("it has neither uri nor bufferView; export the file again".into()));
        }
    };
    let header = image_file::header(&bytes, source.limits.texture_edge).map_err(wrong)?;
    let format = match entry.usage {
        TextureUse::Color | TextureUse::CoveringColor => TexelFormat::Rgba8Srgb,
        TextureUse::Data if header.has_16_bits => TexelFormat::Rgba16Linear,
        TextureUse::Data => TexelFormat::Rgba8Linear,
    };
    let (size, texel) = ((header.width, header.height), format.bytes() as u64);
    let needed = Texture::level_texels(size, Texture::levels_of(size.0, size.1)) * texel;
    let decoded = Texture::level_texels(size, 1) * texel;
    let offset = length.next_multiple_of(TEXEL_ALIGNMENT);
    let total = offset as u64 + needed;
    if total > source.limits.texture_bytes {
        let limit = source.limits.texture_bytes;
        return Err(wrong(format!(
            "with it, textures take {total} bytes, more than {limit}; shrink them"
        )));
    }
    source.budget.expand(bytes.len() as u64, decoded).map_err(wrong)?;
    source.budget.spend(needed, 1, &document.file, &path)?;
    let mean = if entry.usage == TextureUse::CoveringColor { Mean::ByAlpha } else { Mean::Plain };
    Ok(Job { path, bytes, header, format, mean, offset, length: needed as usize })
}

fn describe(document: &Document, entry: &Entry, job: &Job) -> Texture {
    let sampler = document.root.textures[entry.texture].sampler;
    let default = Sampler::default();
    let sampler =
        sampler.and_then(|index| document.root.samplers.get(index.value())).unwrap_or(&default);
    let wrap = |mode: &Checked<WrappingMode>| match mode {
        Checked::Valid(WrappingMode::ClampToEdge) => Wrap::ClampToEdge as u32,
        Checked::Valid(WrappingMode::MirroredRepeat) => Wrap::MirroredRepeat as u32,
        Checked::Valid(WrappingMode::Repeat) | Checked::Invalid => Wrap::Repeat as u32,
    };
    let (width, height) = (job.header.width, job.header.height);
    let is_bilinear = sampler.mag_filter != Some(Checked::Valid(MagFilter::Nearest));
    Texture {
        offset: job.offset as u64,
        width,
        height,
        format: job.format as u32,
        wrap_u: wrap(&sampler.wrap_s),
        wrap_v: wrap(&sampler.wrap_t),
        bilinear: u32::from(is_bilinear),
        level_count: if is_bilinear && wants_levels(sampler) {
            Texture::levels_of(width, height)
        } else {
            1
        },
        reserved: [0; 3],
    }
}

/// Returns whether a texture gets levels. It gets none if its sampler names a filter without
/// levels. If the sampler names no filter, we choose.
fn wants_levels(sampler: &Sampler) -> bool {
    !matches!(sampler.min_filter, Some(Checked::Valid(MinFilter::Nearest | MinFilter::Linear)))
}

fn report(document: &Document, entry: &Entry, job: &Job, bytes: u64) -> TextureReport {
    let image = &document.root.images[entry.image];
    let texture = &document.root.textures[entry.texture];
    let file = image.uri.as_ref().filter(|uri| !uri.starts_with("data:"));
    let name = texture.name.as_ref().or(image.name.as_ref()).or(file);
    TextureReport {
        name: name.cloned().unwrap_or_default(),
        width: job.header.width,
        height: job.header.height,
        bytes,
        format: match job.format {
            TexelFormat::Rgba8Srgb => "srgb8".into(),
            TexelFormat::Rgba8Linear => "linear8".into(),
            TexelFormat::Rgba16Linear => "linear16".into(),
        },
    }
}
