//! What is printed: JSON for programs, tables and a few colours for people. Knows no noun.

use anstream::{AutoStream, ColorChoice as Choice};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// How a command prints.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// How to print: a table for people, JSON for programs.
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value_t,
        env = "LEASEHOLD_OUTPUT",
        hide_env = true
    )]
    pub output: Format,
    /// Whether to use colours: on terminals unless NO_COLOR is set, always, or never.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: ColorChoice,
}

/// For whom to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On terminals.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// For whom.
    pub format: Format,
    choice: Choice,
    terminal: bool,
}

/// A word with a meaning that a colour underlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Busy,
    Quiet,
}

impl Output {
    /// To standard output, as the flags say.
    pub fn new(flags: &OutputFlags) -> Self {
        let stdout = io::stdout();
        let choice = match flags.color {
            ColorChoice::Auto => AutoStream::choice(&stdout),
            ColorChoice::Always => Choice::Always,
            ColorChoice::Never => Choice::Never,
        };
        Self {
            format: flags.output,
            choice,
            terminal: stdout.is_terminal(),
        }
    }

    /// Whether somebody looks at it.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether it has colours.
    pub fn has_colors(&self) -> bool {
        self.choice != Choice::Never
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A line of text.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_ref().as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }

    /// A piece of a line that goes on.
    pub(crate) fn part(&self, text: &str) -> io::Result<()> {
        io::stdout().lock().write_all(text.as_bytes())
    }

    /// A JSON document inside another, two steps in.
    pub(crate) fn json_part(&self, value: &impl Serialize) -> io::Result<()> {
        let text = tame(serde_json::to_string_pretty(value)?);
        self.part(&text.replace('\n', "\n  "))
    }

    /// A JSON document, for reading.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(tame(serde_json::to_string_pretty(value)?))
    }

    /// A JSON document in one line, where more may follow.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(tame(serde_json::to_string(value)?))
    }

    /// A document for programs, a sentence for people.
    pub(crate) fn told(&self, document: &impl Serialize, sentence: &str) -> io::Result<()> {
        match self.format {
            Format::Json => self.json(document),
            Format::Table => self.line(sentence),
        }
    }

    /// A word in the colour of its meaning.
    pub(crate) fn tone(&self, tone: Tone, text: &str) -> String {
        if !self.has_colors() {
            return text.to_owned();
        }
        let color = match tone {
            Tone::Good => AnsiColor::Green,
            Tone::Bad => AnsiColor::Red,
            Tone::Busy => AnsiColor::Cyan,
            Tone::Quiet => AnsiColor::BrightBlack,
        };
        let style = Style::new().fg_color(Some(color.into()));
        format!("{style}{text}{style:#}")
    }

    /// Rows under their headings, as wide as they need to be.
    pub(crate) fn table(&self, headings: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
        self.line(self.rows(Some(headings), rows))
    }

    /// What there is to say of one thing: names on the left, what they are on the right. Empty ones are left out.
    pub(crate) fn fields(&self, fields: Vec<(&str, String)>) -> io::Result<()> {
        let rows = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let rows = rows.map(|(name, value)| vec![self.tone(Tone::Quiet, name), value]);
        self.line(self.rows(None, rows.collect()))
    }

    fn rows(&self, headings: Option<&[&str]>, rows: Vec<Vec<String>>) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        if let Some(headings) = headings {
            table.set_header(headings.iter().map(|name| self.tone(Tone::Quiet, name)));
        }
        table.add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

/// JSON leaves some characters as they are that a terminal would obey; they are only in texts, where an escape says the same.
fn tame(json: String) -> String {
    let obeyed = |one: char| ('\u{7f}'..='\u{9f}').contains(&one);
    if !json.contains(obeyed) {
        return json;
    }
    let written = |one: char| match obeyed(one) {
        true => format!("\\u{:04x}", u32::from(one)),
        false => one.to_string(),
    };
    json.chars().map(written).collect()
}

/// Text that came from elsewhere, with nothing in it that a terminal would obey.
pub fn clean(text: &str) -> String {
    let one_line = text.split(['\n', '\r', '\t']).collect::<Vec<_>>().join(" ");
    one_line
        .chars()
        .map(|one| if one.is_control() { '\u{fffd}' } else { one })
        .collect()
}
