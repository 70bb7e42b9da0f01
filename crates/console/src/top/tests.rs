//! Compares the drawn screens with `tests/snapshots/top`, and tests the keys. `LEASEHOLD_BLESS=1` rewrites the snapshots.
#![allow(clippy::unwrap_used)]

use super::figures::width;
use super::model::TopModel;
use super::theme::Theme;
use super::view::{Focus, Sort, View, ViewAction};
use super::{line, page, render};
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

const PLAIN: Theme = Theme::new(false);

fn at(seconds: u64) -> Timestamp {
    let start: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
    start + Duration::from_secs(seconds)
}

fn workspace(name: &str, plan: Plan, in_use: u32, counts: [u64; 5]) -> WorkspaceState {
    let [pending, claimed, dispatched, completed, failed] = counts;
    // A stable id per name.
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
            max_pending: 1_000_000,
            max_open_bytes: plan.max_open_bytes(),
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
        open_bytes: None,
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
        version: "0.2.0".to_owned(),
        dispatches: true,
        listens: Some("127.0.0.1:7777".to_owned()),
        started_at: at(0),
        seen_at: at(60),
    }
}

/// An overview with a noisy neighbour after `seconds`.
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

fn busy() -> TopModel {
    let mut model = TopModel::new("http://127.0.0.1:7777");
    for second in (0..120).step_by(2) {
        model.update(busy_at(second), vec![instance()]);
    }
    model
}

fn one(overview: Overview) -> TopModel {
    let mut model = TopModel::new("http://127.0.0.1:7777");
    model.update(overview, vec![instance()]);
    model
}

fn many() -> TopModel {
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

fn draw(model: &TopModel, view: &View, theme: Theme, columns: u16, rows: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let drawn = terminal.draw(|frame| page::draw(frame, model, view, theme));
    drawn.unwrap();
    terminal.backend().buffer().clone()
}

/// The text on the screen; a wide character covers the next cell.
fn screen_text(buffer: &Buffer) -> String {
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

fn assert_snapshot(name: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/top");
    leasehold_testkit::assert_snapshot_file(&file.join(format!("{name}.txt")), actual);
}

fn assert_screen(name: &str, model: &TopModel, view: &View, columns: u16, rows: u16) {
    assert_snapshot(name, &screen_text(&draw(model, view, PLAIN, columns, rows)));
}

fn press_keys(view: &mut View, model: &TopModel, keys: &str) {
    for key in keys.chars() {
        let code = if key == '\n' {
            KeyCode::Enter
        } else {
            KeyCode::Char(key)
        };
        assert_eq!(
            view.press(KeyEvent::from(code), model),
            ViewAction::Continue
        );
    }
}

#[test]
fn busy_server() {
    assert_screen("busy", &busy(), &View::default(), 80, 24);
    assert_screen("wide", &busy(), &View::default(), 160, 24);
    assert_screen("narrow", &busy(), &View::default(), 40, 24);
}

#[test]
fn empty_server_shows_hints() {
    let fresh = overview(
        0,
        vec![workspace("default", Plan::Pro, 0, [0; 5])],
        Vec::new(),
    );
    assert_screen("empty", &one(fresh), &View::default(), 80, 24);
    let bare = one(overview(0, Vec::new(), Vec::new()));
    assert_screen("no_workspace", &bare, &View::default(), 80, 24);
}

#[test]
fn engine_outage_is_highlighted() {
    let mut down = busy_at(10);
    down.engine = EngineState {
        name: "temporal".to_owned(),
        state: EngineHealth::Down,
        error: Some("127.0.0.1:7233: connection refused".to_owned()),
    };
    let model = one(down);
    assert_screen("engine_down", &model, &View::default(), 80, 24);
    let buffer = draw(&model, &View::default(), Theme::new(true), 80, 24);
    assert_eq!(buffer[(0, 1)].fg, Color::Red);
}

#[test]
fn paused_workspaces_and_queues_are_marked() {
    let mut overview = busy_at(10);
    overview.busiest[2].workspace.paused = true;
    overview.busiest[0].slots.limit = 10;
    overview.queues[0].paused = true;
    overview.engine.state = EngineHealth::NotDispatchedHere;
    let model = one(overview);
    let mut view = View::default();
    press_keys(&mut view, &model, "p");
    assert_screen("paused", &model, &view, 80, 24);
}

#[test]
fn server_outage_keeps_the_last_overview() {
    let mut model = busy();
    model.record_failure("Connection refused (os error 111)", at(130));
    model.record_failure("Connection refused (os error 111)", at(144));
    assert_screen("server_outage", &model, &View::default(), 80, 24);
    model.update(busy_at(146), vec![instance(), instance()]);
    let back = screen_text(&draw(&model, &View::default(), PLAIN, 80, 24));
    assert!(back.contains("engine embedded: up"), "{back}");
    assert!(back.contains("2 instances, 0.2.0"), "{back}");
}

#[test]
fn unusual_names_stay_in_their_columns() {
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
    assert_screen("names", &model, &View::default(), 80, 24);
    assert_screen("names_narrow", &model, &View::default(), 34, 20);
}

#[test]
fn long_tables_scroll() {
    let model = many();
    let mut view = View::default();
    assert_screen("many", &model, &view, 80, 24);
    press_keys(&mut view, &model, "G");
    let last = screen_text(&draw(&model, &view, PLAIN, 80, 24));
    assert!(last.contains("workspace-49"), "{last}");
    assert!(!last.contains("workspace-00"), "{last}");
    press_keys(&mut view, &model, "k");
    assert_eq!(view.first(Focus::Workspaces, 50, 1), 48);
    view.press(KeyEvent::from(KeyCode::Tab), &model);
    press_keys(&mut view, &model, "jjjj");
    assert_eq!(view.first(Focus::Queues, 9, 1), 4);
    assert_eq!(view.first(Focus::Queues, 9, 7), 2, "the last page is full");
}

#[test]
fn filter_is_typed_applied_and_cleared() {
    let model = busy();
    let mut view = View::default();
    press_keys(&mut view, &model, "/zebra");
    assert_screen("filter", &model, &view, 80, 24);
    for _ in 0..4 {
        view.press(KeyEvent::from(KeyCode::Backspace), &model);
    }
    press_keys(&mut view, &model, "\n");
    assert!(view.workspaces(&model).is_empty());
    view.press(KeyEvent::from(KeyCode::Esc), &model);
    press_keys(&mut view, &model, "/GPI\n");
    let names = view.workspaces(&model);
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].workspace.name, "magpie");
    let escape = KeyEvent::from(KeyCode::Esc);
    assert_eq!(
        view.press(escape, &model),
        ViewAction::Continue,
        "Esc clears the filter first"
    );
    assert_eq!(view.press(escape, &model), ViewAction::Quit);
}

#[test]
fn rows_are_sorted() {
    let model = busy();
    let mut view = View::default();
    let names = |view: &View| -> Vec<String> {
        let states = view.workspaces(&model).into_iter();
        states.map(|state| state.workspace.name.clone()).collect()
    };
    assert_eq!(names(&view), ["globex", "magpie", "acme", "sparrow"]);
    press_keys(&mut view, &model, "s");
    assert_eq!(names(&view), ["magpie", "globex", "sparrow", "acme"]);
    assert_eq!(view.queues(&model)[0].name, "imports");
    press_keys(&mut view, &model, "s");
    assert_eq!(view.sort, Sort::Name);
    assert_eq!(names(&view), ["acme", "globex", "magpie", "sparrow"]);
}

#[test]
fn help_overlay_closes_on_any_key() {
    let model = busy();
    let mut view = View::default();
    press_keys(&mut view, &model, "?");
    assert_screen("help", &model, &view, 80, 24);
    press_keys(&mut view, &model, "q");
    assert!(!view.help);
    assert_eq!(
        view.press(KeyEvent::from(KeyCode::Char('q')), &model),
        ViewAction::Quit
    );
}

#[test]
fn control_keys_work_while_typing() {
    let model = busy();
    let mut view = View::default();
    press_keys(&mut view, &model, "/");
    let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
    assert_eq!(view.press(control('z'), &model), ViewAction::Suspend);
    assert_eq!(view.press(control('c'), &model), ViewAction::Quit);
    assert_eq!(view.filter, "");
}

#[test]
fn every_size_can_be_drawn() {
    let (busy, many) = (busy(), many());
    let mut help = View::default();
    press_keys(&mut help, &busy, "?");
    for columns in (1..12).chain((12..200).step_by(17)) {
        for rows in (1..12).chain((12..60).step_by(21)) {
            for model in [&busy, &many] {
                draw(model, &View::default(), PLAIN, columns, rows);
                draw(model, &help, PLAIN, columns, rows);
            }
        }
    }
}

#[test]
fn plain_theme_has_no_colours() {
    let model = busy();
    let buffer = draw(&model, &View::default(), PLAIN, 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
    let colored = draw(&model, &View::default(), Theme::new(true), 80, 24);
    assert_eq!(screen_text(&buffer), screen_text(&colored));
    assert!(colored.content.iter().any(|cell| cell.fg != Color::Reset));
}

#[test]
fn snapshot_has_every_row_and_escape_codes_only_with_colours() {
    let lines = page::whole(&busy(), &View::default(), PLAIN, 100);
    let text = render::to_text(&lines, PLAIN);
    assert_snapshot("once", &format!("{text}\n"));
    let all = render::to_text(&page::whole(&many(), &View::default(), PLAIN, 100), PLAIN);
    for number in 0..50 {
        assert!(all.contains(&format!("workspace-{number:02}")), "{all}");
    }
    let theme = Theme::new(true);
    let colored = render::to_text(&page::whole(&busy(), &View::default(), theme, 100), theme);
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
fn summary_line() {
    let mut model = busy();
    let before = line::summary(&model);
    model.record_failure("Connection refused (os error 111)", at(200));
    assert_snapshot("lines", &format!("{before}\n{}\n", line::summary(&model)));
}
