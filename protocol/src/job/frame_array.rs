//! What a job's frames are as arrays, for jobs that read them.

use super::{FormatSpec, JobKind};
use crate::compute::input::{InputArray, PICTURE};
use crate::compute::{ComputeFormat, Element};

/// The values of a frame as an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameArray {
    /// End of the file's name.
    pub file: String,
    /// Type of the values.
    pub element: Element,
    /// Shape of the array. A picture has its rows, columns and channels, red first.
    pub shape: Vec<u64>,
}

impl JobKind {
    /// Returns what a frame's file is as an array: of this output, or of the only one. The error
    /// says why the frames are no array.
    pub fn frame_array(&self, output: Option<&str>) -> Result<FrameArray, String> {
        match (self, output) {
            (Self::Render(_), Some(output)) => {
                Err(format!("has no output `{output}`: it renders pictures"))
            }
            (Self::Render(render), None) => {
                if !render.formats.contains(&FormatSpec::Exr) {
                    return Err("has no EXR files, whose values could be read".to_owned());
                }
                let window = render.data_window();
                let channels = if render.transparent { 4 } else { 3 };
                let shape = vec![window.height().into(), window.width().into(), channels];
                Ok(FrameArray { file: PICTURE.to_owned(), element: Element::F32, shape })
            }
            (Self::Compute(compute), output) => {
                if !compute.formats.contains(&ComputeFormat::Npy) {
                    return Err("has no NPY files, whose values could be read".to_owned());
                }
                let written = compute.written();
                let found = match (output, &written[..]) {
                    (None, [only]) => Some(only),
                    (None, _) => None,
                    (Some(name), all) => all.iter().find(|one| one.name == name),
                };
                let names: Vec<&str> = written.iter().map(|one| one.name.as_str()).collect();
                let found = found.ok_or_else(|| match output {
                    None => {
                        format!("has several outputs, of which one is meant: {}", names.join(", "))
                    }
                    Some(name) => format!("has no output `{name}`, only {}", names.join(", ")),
                })?;
                Ok(FrameArray {
                    file: found.file_extension(ComputeFormat::Npy.extension()),
                    element: found.result_element(),
                    shape: found.result_shape(&compute.domain),
                })
            }
        }
    }

    /// Returns whether a job's input from this one is what its frames are. The error says what
    /// is not.
    pub fn gives(&self, input: &InputArray) -> Result<(), String> {
        let Some(from) = &input.from else { return Ok(()) };
        let output = from.file.strip_suffix(".npy");
        let array = self.frame_array(output)?;
        if array.file != from.file {
            return Err(format!("has no file `{}`, but `{}`", from.file, array.file));
        }
        if (array.element, &array.shape) != (input.element, &input.shape) {
            return Err(format!(
                "makes {} {:?}, and the input is {} {:?}",
                array.element, array.shape, input.element, input.shape
            ));
        }
        Ok(())
    }
}
