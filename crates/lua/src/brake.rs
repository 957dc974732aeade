//! How much of its limits a script gets: all, or a tenth after it reached them for several objects in a row.
//!
//! A quarantine bounds what one object costs, not what ten thousand of them do. They cannot be left unasked meanwhile: nobody
//! asks about an object again before it changes, so an answer that was put off would stay away. What is bounded is the cost.
//!
//! No clock is read: what a script gets depends on what it did before, so that the same questions in the same order always
//! come out alike.

/// How often in a row a script may reach a limit before it gets a tenth.
pub const IN_A_ROW: u32 = 3;

/// Of so many runs on the brake one gets all of the limits, so that a script whose honest work takes longer than the tenth
/// finds out of it.
pub const TRIAL: u32 = 10;

/// How much of the limits a run gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of them.
    All,
    /// A tenth of the time and of the instructions.
    Tenth,
}

/// What one script did lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brake {
    reached: u32,
    runs: u32,
}

impl Brake {
    /// What the next run gets.
    pub fn share(&mut self) -> Share {
        if !self.is_on() {
            return Share::All;
        }
        self.runs = (self.runs + 1) % TRIAL;
        if self.runs == 0 { Share::All } else { Share::Tenth }
    }

    /// A run reached a limit, of the tenth too.
    pub const fn reached(&mut self) {
        self.reached = self.reached.saturating_add(1);
    }

    /// A run ended by itself, with an answer or without: the script can, so it gets all of its limits again.
    pub const fn ended(&mut self) {
        self.reached = 0;
        self.runs = 0;
    }

    /// Whether most runs get a tenth now.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.reached >= IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reached: u32) -> Brake {
        let mut brake = Brake::default();
        (0..reached).for_each(|_| brake.reached());
        brake
    }

    #[test]
    fn the_third_limit_in_a_row_is_the_last_that_costs_all_of_it() {
        assert_eq!(after(IN_A_ROW - 1).share(), Share::All);
        assert_eq!(after(IN_A_ROW).share(), Share::Tenth);
    }

    #[test]
    fn a_run_that_ends_by_itself_begins_the_row_anew() {
        let mut brake = after(IN_A_ROW);
        brake.ended();
        assert_eq!(brake, Brake::default());
        brake.reached();
        assert_eq!(brake.share(), Share::All);
    }

    #[test]
    fn one_run_in_ten_gets_all_so_that_no_script_stays_on_the_brake_for_what_it_did_once() {
        let mut brake = after(IN_A_ROW);
        let mut full = 0;
        for _ in 0..100 {
            full += u32::from(brake.share() == Share::All);
            brake.reached();
        }
        assert_eq!(full, 100 / TRIAL);
    }
}
