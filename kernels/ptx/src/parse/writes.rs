//! Which slots may be read before they are written, as the text of a function tells: those hold
//! something that a thread has to be given. Follows no branches.

/// Number of a stretch of code that is entered at its beginning only.
type Stretch = u32;

/// Reads and writes of a function's slots, in the order of its text.
#[derive(Default)]
pub(crate) struct Writes {
    /// The present stretch; the first is 1.
    stretch: Stretch,
    /// For each slot, the stretch that last wrote it for certain; 0 for none.
    written: Vec<Stretch>,
    /// For each slot, whether a read may meet what no instruction wrote.
    is_exposed: Vec<bool>,
    /// What the present statement writes once it has read.
    pending: Vec<u32>,
}

impl Writes {
    /// A label: code from elsewhere, which may have written less, goes on here.
    pub(crate) fn enter(&mut self) {
        self.stretch += 1;
    }

    /// The present statement reads a slot.
    pub(crate) fn read(&mut self, slot: u32) {
        let slot = self.make_room(slot);
        self.is_exposed[slot] |= self.written[slot] != self.stretch + 1;
    }

    /// The present statement writes a slot.
    pub(crate) fn write(&mut self, slot: u32) {
        self.pending.push(slot);
    }

    /// The end of a statement. What may have been jumped over has written nothing for certain.
    pub(crate) fn end_statement(&mut self, is_guarded: bool) {
        for at in 0..self.pending.len() {
            let slot = self.make_room(self.pending[at]);
            if !is_guarded {
                self.written[slot] = self.stretch + 1;
            }
        }
        self.pending.clear();
    }

    fn make_room(&mut self, slot: u32) -> usize {
        let slot = slot as usize;
        if slot >= self.written.len() {
            self.written.resize(slot + 1, 0);
            self.is_exposed.resize(slot + 1, false);
        }
        slot
    }

    /// The slots that a thread has to be given, those below `always` among them.
    pub(crate) fn given(&self, always: u32) -> Vec<u32> {
        let exposed = (0..).zip(&self.is_exposed).filter(|(_, is_exposed)| **is_exposed);
        let exposed = exposed.map(|(slot, _)| slot).filter(|slot| *slot >= always);
        (0..always).chain(exposed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_first_in_one_stretch_is_not_given() {
        let mut writes = Writes::default();
        // 5 = 4; 5 = 5
        writes.write(5);
        writes.read(4);
        writes.end_statement(false);
        writes.write(5);
        writes.read(5);
        writes.end_statement(false);
        assert_eq!(writes.given(3), [0, 1, 2, 4]);
        // After a label nothing is certain, until it is written again.
        writes.enter();
        writes.write(5);
        writes.end_statement(false);
        writes.read(5);
        writes.end_statement(false);
        assert_eq!(writes.given(3), [0, 1, 2, 4]);
        writes.enter();
        writes.read(5);
        writes.end_statement(false);
        assert_eq!(writes.given(3), [0, 1, 2, 4, 5]);
    }

    #[test]
    fn what_may_be_jumped_over_and_what_reads_itself_is_given() {
        let mut writes = Writes::default();
        writes.write(3);
        writes.end_statement(true);
        writes.read(3);
        writes.end_statement(false);
        writes.write(7);
        writes.read(7);
        writes.end_statement(false);
        assert_eq!(writes.given(3), [0, 1, 2, 3, 7]);
    }
}
