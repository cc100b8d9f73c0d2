//! `ringmain top`: a live view of a router, in the terminal.
//!
//! The router is asked once an interval ([`sample`]); [`state`] keeps what was seen, what is chosen and in which
//! order; [`draw`] makes a screen of it and knows neither terminal nor router.

mod draw;
mod sample;
mod state;

use core::time::Duration;
use std::io::{self, IsTerminal as _};
use std::time::Instant;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::names::Called;
use super::options::TopOptions;
use super::problem::Problem;
use super::router::Router;
use sample::Sample;
use state::{State, Then};

/// How long a key waits for the connection's turn, at the most.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// Shows the view until the user quits.
///
/// # Errors
/// [`Problem`]: there is no terminal, or the router can't be asked.
pub fn top(options: &TopOptions) -> Result<(), Problem> {
    if !io::stdout().is_terminal() {
        return Err(Problem::usage(
            "'top' needs a terminal; for a file or a pipe there is 'ringmain stat --watch', also with --json",
        ));
    }
    // Everything that can fail for want of a router fails before the screen is taken.
    let mut router = Router::connect(&options.connection, &options.target, Called::Ringmain)?;
    let mut state = State::new(Sample::take(&mut router)?);
    // Restores the terminal also when something panics.
    let mut terminal = ratatui::try_init()
        .map_err(|error| Problem::Local(format!("the terminal can't be used: {error}")))?;
    let shown = run(options, &mut router, &mut state, &mut terminal);
    ratatui::restore();
    match shown {
        Ok(()) | Err(Problem::Stopped) => {
            router.close();
            Ok(())
        }
        Err(problem) => Err(problem),
    }
}

fn run(
    options: &TopOptions,
    router: &mut Router,
    state: &mut State,
    terminal: &mut DefaultTerminal,
) -> Result<(), Problem> {
    let fault = |error: io::Error| Problem::Local(format!("the terminal can't be used: {error}"));
    let interval = Duration::from_secs_f64(options.interval);
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| draw::draw(frame, state)).map_err(fault)?;
        let left = next.saturating_duration_since(Instant::now());
        if event::poll(left.min(KEY_WAIT)).map_err(fault)? {
            match event::read().map_err(fault)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.press(key) {
                    Then::GoOn => {}
                    Then::Quit => return Ok(()),
                },
                Event::Key(_)
                | Event::FocusGained
                | Event::FocusLost
                | Event::Mouse(_)
                | Event::Paste(_)
                | Event::Resize(..) => {}
            }
        }
        if Instant::now() < next {
            router.rest(Duration::ZERO)?;
            continue;
        }
        next = Instant::now() + interval;
        if state.is_paused {
            router.rest(Duration::ZERO)?;
        } else {
            state.see(Sample::take(router)?);
        }
    }
}
