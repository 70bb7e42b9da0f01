//! What is drawn, compared with pictures in `tests/snapshots/top`, and what the keys do. `LEASEHOLD_BLESS=1` draws the pictures anew.
#![allow(clippy::unwrap_used)]

use super::figures::width;
use super::look::Look;
use super::model::Model;
use super::view::{Focus, Sort, View, Wish};
use super::{line, page, picture};
use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::{EngineHealth, EngineState, Overview, QueueUse};
use leasehold_client::api::workspace::{RequestCounts, Slots, Workspace, WorkspaceState};
use leasehold_core::{Plan, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use std::path::Path;
use std::time::Duration;

const PLAIN: Look = Look::new(false);

fn at(seconds: u64) -> Timestamp {
    let start: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    start + Duration::from_secs(seconds)
}

fn workspace(name: &str, plan: Plan, in_use: u32, counts: [u64; 5]) -> WorkspaceState {
    let [pending, claimed, dispatched, completed, failed] = counts;
    // An id of its own for every name, the same every time.
    let id = name
        .bytes()
        .fold(7u128, |id, byte| id.wrapping_mul(31) + u128::from(byte));
    WorkspaceState {
        workspace: Workspace {
            id: uuid::Uuid::from_u128(id).to_string().parse().unwrap(),
            name: name.to_owned(),
            plan,
            max_concurrent_executions: plan.max_concurrent_executions(),
            overridden: false,
            paused: false,
            created_at: at(0),
        },
        slots: Slots {
            limit: plan.max_concurrent_executions(),
            in_use,
        },
        requests: RequestCounts {
            pending,
            claimed,
            dispatched,
            completed,
            failed,
        },
    }
}

fn queue(name: &str, running: u64, waiting: u64, limit: Option<u32>) -> QueueUse {
    QueueUse {
        name: name.to_owned(),
        limit,
        paused: false,
        waiting,
        more_waiting: waiting >= 10_000,
        running,
    }
}

fn overview(seconds: u64, busiest: Vec<WorkspaceState>, queues: Vec<QueueUse>) -> Overview {
    let sum = |part: fn(&RequestCounts) -> u64| busiest.iter().map(|one| part(&one.requests)).sum();
    Overview {
        at: at(seconds),
        engine: EngineState {
            name: "embedded".to_owned(),
            state: EngineHealth::Well,
            error: None,
        },
        workspaces: busiest.len() as u64,
        requests: RequestCounts {
            pending: sum(|counts| counts.pending),
            claimed: sum(|counts| counts.claimed),
            dispatched: sum(|counts| counts.dispatched),
            completed: sum(|counts| counts.completed),
            failed: sum(|counts| counts.failed),
        },
        busiest,
        queues,
    }
}

fn instance() -> Instance {
    Instance {
        id: "host-1".to_owned(),
        version: "0.1.0".to_owned(),
        dispatches: true,
        listens: Some("127.0.0.1:7777".to_owned()),
        started_at: at(0),
        seen_at: at(60),
    }
}

/// What a server with a noisy neighbour looks like after `seconds`.
fn busy_at(seconds: u64) -> Overview {
    let wave = [3, 5, 8, 6, 4, 2, 1, 0, 2, 7];
    let done: u64 = (0..seconds).map(|at| wave[at as usize % wave.len()]).sum();
    let workspaces = vec![
        workspace(
            "globex",
            Plan::Enterprise,
            13,
            [2, 1, 12, 9_000 + 2 * done, 12],
        ),
        workspace(
            "acme",
            Plan::Pro,
            4,
            [0, 0, 4, 3_000 + done, 9 + seconds / 10],
        ),
        workspace(
            "magpie",
            Plan::Pro,
            5,
            [812 - done.min(700), 0, 5, 1_200 + done, 0],
        ),
        workspace("sparrow", Plan::Free, 1, [1, 0, 1, 400 + seconds / 4, 0]),
    ];
    let queues = vec![
        queue("warehouse", 11, 3, None),
        queue("reports", 8, 14, Some(8)),
        queue("payments", 6, 0, None),
        queue("imports", 0, 10_000, None),
    ];
    overview(seconds, workspaces, queues)
}

fn busy() -> Model {
    let mut model = Model::new("http://127.0.0.1:7777");
    for second in (0..120).step_by(2) {
        model.take(busy_at(second), vec![instance()]);
    }
    model
}

fn one(overview: Overview) -> Model {
    let mut model = Model::new("http://127.0.0.1:7777");
    model.take(overview, vec![instance()]);
    model
}

fn many() -> Model {
    let name = |number: u64| format!("workspace-{number:02}");
    let state =
        |number: u64| workspace(&name(number), Plan::Free, 1, [50 - number, 0, 1, number, 0]);
    let queues = (0..9).map(|number| queue(&format!("queue-{number}"), number, 1, None));
    let all = overview(0, (0..50).map(state).collect(), queues.collect());
    one(Overview {
        workspaces: 1_204,
        ..all
    })
}

fn drawn(model: &Model, view: &View, look: Look, columns: u16, rows: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let drawn = terminal.draw(|frame| page::draw(frame, model, view, look));
    drawn.unwrap();
    terminal.backend().buffer().clone()
}

/// What somebody sees: a wide letter takes the place of the cell after it.
fn seen(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let (mut line, mut x) = (String::new(), 0);
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(width(symbol).max(1)).unwrap();
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn compare(name: &str, seen: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/top");
    leasehold_testkit::assert_kept(&file.join(format!("{name}.txt")), seen);
}

fn picture_of(name: &str, model: &Model, view: &View, columns: u16, rows: u16) {
    compare(name, &seen(&drawn(model, view, PLAIN, columns, rows)));
}

fn typed(view: &mut View, model: &Model, keys: &str) {
    for key in keys.chars() {
        let code = if key == '\n' {
            KeyCode::Enter
        } else {
            KeyCode::Char(key)
        };
        assert_eq!(view.press(KeyEvent::from(code), model), Wish::Stay);
    }
}

#[test]
fn a_busy_server_is_seen_at_a_glance() {
    picture_of("busy", &busy(), &View::default(), 80, 24);
    picture_of("wide", &busy(), &View::default(), 160, 24);
    picture_of("narrow", &busy(), &View::default(), 40, 24);
}

#[test]
fn an_empty_server_says_what_to_do() {
    let fresh = overview(
        0,
        vec![workspace("default", Plan::Pro, 0, [0; 5])],
        Vec::new(),
    );
    picture_of("empty", &one(fresh), &View::default(), 80, 24);
    let bare = one(overview(0, Vec::new(), Vec::new()));
    picture_of("no_workspace", &bare, &View::default(), 80, 24);
}

#[test]
fn an_engine_that_is_down_is_not_missed() {
    let mut down = busy_at(10);
    down.engine = EngineState {
        name: "temporal".to_owned(),
        state: EngineHealth::Down,
        error: Some("127.0.0.1:7233: connection refused".to_owned()),
    };
    let model = one(down);
    picture_of("engine_down", &model, &View::default(), 80, 24);
    let buffer = drawn(&model, &View::default(), Look::new(true), 80, 24);
    assert_eq!(buffer[(0, 1)].fg, Color::Red);
}

#[test]
fn what_is_paused_says_so() {
    let mut overview = busy_at(10);
    overview.busiest[2].workspace.paused = true;
    overview.busiest[0].slots.limit = 10;
    overview.queues[0].paused = true;
    overview.engine.state = EngineHealth::NotDispatchedHere;
    let model = one(overview);
    let mut view = View::default();
    typed(&mut view, &model, "p");
    picture_of("paused", &model, &view, 80, 24);
}

#[test]
fn a_server_that_went_away_is_told_of_and_the_last_look_stays() {
    let mut model = busy();
    model.lost("Connection refused (os error 111)", at(130));
    model.lost("Connection refused (os error 111)", at(144));
    picture_of("away", &model, &View::default(), 80, 24);
    model.take(busy_at(146), vec![instance(), instance()]);
    let back = seen(&drawn(&model, &View::default(), PLAIN, 80, 24));
    assert!(back.contains("engine embedded: well"), "{back}");
    assert!(back.contains("2 instances, 0.1.0"), "{back}");
}

#[test]
fn odd_names_stay_in_their_columns() {
    let names = [
        "株式会社レンタル・ワークフロー・サービス東京",
        "e\u{301}tude-in-e\u{301}-minor",
        "🦉🦉🦉",
        "a\u{1b}[31mred",
        "the-one-with-a-name-that-goes-on-and-on-and-on-until-it-is-cut-somewhere",
        "x",
    ];
    let states = names.map(|name| workspace(name, Plan::Pro, 2, [3, 0, 2, 4, 0]));
    let queues = vec![
        queue("支払い", 1, 2, Some(1_000_000)),
        queue("q", 0, 0, None),
    ];
    let model = one(overview(0, states.to_vec(), queues));
    picture_of("names", &model, &View::default(), 80, 24);
    picture_of("names_narrow", &model, &View::default(), 34, 20);
}

#[test]
fn more_than_fits_is_scrolled() {
    let model = many();
    let mut view = View::default();
    picture_of("many", &model, &view, 80, 24);
    typed(&mut view, &model, "G");
    let last = seen(&drawn(&model, &view, PLAIN, 80, 24));
    assert!(last.contains("workspace-49"), "{last}");
    assert!(!last.contains("workspace-00"), "{last}");
    typed(&mut view, &model, "k");
    assert_eq!(view.first(Focus::Workspaces, 50, 1), 48);
    view.press(KeyEvent::from(KeyCode::Tab), &model);
    typed(&mut view, &model, "jjjj");
    assert_eq!(view.first(Focus::Queues, 9, 1), 4);
    assert_eq!(view.first(Focus::Queues, 9, 7), 2, "the last page is full");
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let model = busy();
    let mut view = View::default();
    typed(&mut view, &model, "/zebra");
    picture_of("filter", &model, &view, 80, 24);
    for _ in 0..4 {
        view.press(KeyEvent::from(KeyCode::Backspace), &model);
    }
    typed(&mut view, &model, "\n");
    assert!(view.workspaces(&model).is_empty());
    view.press(KeyEvent::from(KeyCode::Esc), &model);
    typed(&mut view, &model, "/GPI\n");
    let names = view.workspaces(&model);
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].workspace.name, "magpie");
    let escape = KeyEvent::from(KeyCode::Esc);
    assert_eq!(
        view.press(escape, &model),
        Wish::Stay,
        "it clears the filter first"
    );
    assert_eq!(view.press(escape, &model), Wish::Quit);
}

#[test]
fn rows_are_sorted_by_what_was_chosen() {
    let model = busy();
    let mut view = View::default();
    let names = |view: &View| -> Vec<String> {
        let states = view.workspaces(&model).into_iter();
        states.map(|state| state.workspace.name.clone()).collect()
    };
    assert_eq!(names(&view), ["globex", "magpie", "acme", "sparrow"]);
    typed(&mut view, &model, "s");
    assert_eq!(names(&view), ["magpie", "globex", "sparrow", "acme"]);
    assert_eq!(view.queues(&model)[0].name, "imports");
    typed(&mut view, &model, "s");
    assert_eq!(view.sort, Sort::Name);
    assert_eq!(names(&view), ["acme", "globex", "magpie", "sparrow"]);
}

#[test]
fn help_covers_the_picture_and_any_key_closes_it() {
    let model = busy();
    let mut view = View::default();
    typed(&mut view, &model, "?");
    picture_of("help", &model, &view, 80, 24);
    typed(&mut view, &model, "q");
    assert!(!view.help);
    assert_eq!(
        view.press(KeyEvent::from(KeyCode::Char('q')), &model),
        Wish::Quit
    );
}

#[test]
fn control_keys_end_and_suspend_even_while_typing() {
    let model = busy();
    let mut view = View::default();
    typed(&mut view, &model, "/");
    let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
    assert_eq!(view.press(control('z'), &model), Wish::Suspend);
    assert_eq!(view.press(control('c'), &model), Wish::Quit);
    assert_eq!(view.filter, "");
}

#[test]
fn every_size_can_be_drawn() {
    let (busy, many) = (busy(), many());
    let mut help = View::default();
    typed(&mut help, &busy, "?");
    for columns in (1..12).chain((12..200).step_by(17)) {
        for rows in (1..12).chain((12..60).step_by(21)) {
            for model in [&busy, &many] {
                drawn(model, &View::default(), PLAIN, columns, rows);
                drawn(model, &help, PLAIN, columns, rows);
            }
        }
    }
}

#[test]
fn without_colours_there_are_none() {
    let model = busy();
    let buffer = drawn(&model, &View::default(), PLAIN, 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
    let colored = drawn(&model, &View::default(), Look::new(true), 80, 24);
    assert_eq!(seen(&buffer), seen(&colored));
    assert!(colored.content.iter().any(|cell| cell.fg != Color::Reset));
}

#[test]
fn one_picture_has_every_row_and_no_escape_codes_unless_there_are_colours() {
    let lines = page::whole(&busy(), &View::default(), PLAIN, 100);
    let text = picture::text(&lines, PLAIN);
    compare("once", &format!("{text}\n"));
    let all = picture::text(&page::whole(&many(), &View::default(), PLAIN, 100), PLAIN);
    for number in 0..50 {
        assert!(all.contains(&format!("workspace-{number:02}")), "{all}");
    }
    let look = Look::new(true);
    let colored = picture::text(&page::whole(&busy(), &View::default(), look, 100), look);
    assert!(colored.contains("\u{1b}["));
    assert_eq!(
        anstream::adapter::strip_str(&colored)
            .to_string()
            .lines()
            .count(),
        text.lines().count()
    );
}

#[test]
fn a_line_of_figures_says_the_same_in_short() {
    let mut model = busy();
    let told = line::of(&model);
    model.lost("Connection refused (os error 111)", at(200));
    compare("lines", &format!("{told}\n{}\n", line::of(&model)));
}
