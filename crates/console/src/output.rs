//! Command output: JSON for programs, tables with colours for people. Knows no resource type.

use anstream::{AutoStream, ColorChoice as Choice};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Output flags.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Output format.
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value_t,
        env = "LEASEHOLD_OUTPUT",
        hide_env = true
    )]
    pub output: OutputFormat,
    /// Use colours; `auto` uses them on terminals unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: ColorChoice,
}

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On terminals unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The output stream of a command.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Table or JSON.
    pub format: OutputFormat,
    choice: Choice,
    terminal: bool,
}

/// The meaning that a colour expresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Busy,
    Quiet,
}

impl Output {
    /// Creates the output for standard output.
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

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether the output has colours.
    pub fn has_colors(&self) -> bool {
        self.choice != Choice::Never
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Prints a line.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_ref().as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }

    /// Prints text without a line break.
    pub(crate) fn part(&self, text: &str) -> io::Result<()> {
        io::stdout().lock().write_all(text.as_bytes())
    }

    /// Prints a JSON document as an element of an array, indented by two spaces.
    pub(crate) fn json_part(&self, value: &impl Serialize) -> io::Result<()> {
        let text = escape_controls(serde_json::to_string_pretty(value)?);
        self.part(&text.replace('\n', "\n  "))
    }

    /// Prints an indented JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(escape_controls(serde_json::to_string_pretty(value)?))
    }

    /// Prints a JSON document on one line.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(escape_controls(serde_json::to_string(value)?))
    }

    /// Prints `document` in JSON format, else `sentence`.
    pub(crate) fn print_result(&self, document: &impl Serialize, sentence: &str) -> io::Result<()> {
        match self.format {
            OutputFormat::Json => self.json(document),
            OutputFormat::Table => self.line(sentence),
        }
    }

    /// Colours a text.
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

    /// Prints a table.
    pub(crate) fn table(&self, headings: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
        self.line(self.rows(Some(headings), rows))
    }

    /// Prints one resource as name and value per line; skips empty values.
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

/// Escapes control characters that JSON allows in strings but terminals interpret.
fn escape_controls(json: String) -> String {
    let is_control = |one: char| ('\u{7f}'..='\u{9f}').contains(&one);
    if !json.contains(is_control) {
        return json;
    }
    let written = |one: char| match is_control(one) {
        true => format!("\\u{:04x}", u32::from(one)),
        false => one.to_string(),
    };
    json.chars().map(written).collect()
}

/// Replaces control characters in untrusted text, so that a terminal does not interpret them.
pub fn clean(text: &str) -> String {
    let one_line = text.split(['\n', '\r', '\t']).collect::<Vec<_>>().join(" ");
    one_line
        .chars()
        .map(|one| if one.is_control() { '\u{fffd}' } else { one })
        .collect()
}
