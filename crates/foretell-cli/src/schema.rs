//! What the columns of logs mean, as flags and in TOML files.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::anyhow;
use foretell::Schema;
use foretell::encode::Bins;
use foretell::log::{join_names, split_names};

/// Which columns are read as what. COLUMN is a name, COLUMNS are names with commas between them;
/// `none` stands for no column.
#[derive(clap::Args, Clone, Default)]
#[command(next_help_heading = "Columns of the logs")]
pub struct SchemaArgs {
    /// TOML file that says which columns are read as what; flags override it
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Columns whose values together name an episode; `row` if each row is one
    #[arg(long, value_name = "COLUMNS")]
    episode: Option<String>,
    /// Column whose episodes stay together when some are held out, such as the person
    #[arg(long, value_name = "COLUMN")]
    group: Option<String>,
    /// Column with the number of the step, which must go up by 1
    #[arg(long, value_name = "COLUMN")]
    step: Option<String>,
    /// Columns by which the rows of an episode are sorted, wherever they are in the file; `row` for
    /// their order in the file
    #[arg(long, value_name = "COLUMNS")]
    sort: Option<String>,
    /// Columns that make the action; `none` for a system that is only observed
    #[arg(long, value_name = "COLUMNS")]
    action: Option<String>,
    /// Columns that make the observation
    #[arg(long, value_name = "COLUMNS")]
    observation: Option<String>,
    /// Column of the reward
    #[arg(long, value_name = "COLUMN")]
    reward: Option<String>,
    /// Column that is true in the last row of an episode that ended by itself
    #[arg(long, value_name = "COLUMN")]
    terminated: Option<String>,
    /// Column that is true in the last row of an episode that was cut off
    #[arg(long, value_name = "COLUMN")]
    truncated: Option<String>,
    /// Column with the probability of the action under the behaviour policy
    #[arg(long, value_name = "COLUMN")]
    action_prob: Option<String>,
    /// Column with the natural logarithm of that probability
    #[arg(long, value_name = "COLUMN")]
    action_logp: Option<String>,
    /// Which actions could be taken: a column that lists them with ; between them, or is 0 where only
    /// the action taken could; or columns available_NAME, one for each action, that are 1 where it
    /// could
    #[arg(long, value_name = "COLUMNS")]
    available: Option<String>,
    /// Column of a time: how long it took since the row before becomes part of the action
    #[arg(long, value_name = "COLUMN")]
    elapsed: Option<String>,
    /// Where elapsed times are cut: durations such as 3m,1y (s, min, h, d, w, m, y), or numbers in
    /// the unit of the column
    #[arg(long, value_name = "TIMES", requires = "elapsed", value_delimiter = ',')]
    elapsed_bins: Vec<String>,
    /// The observation of a row was seen before its action, not after it
    #[arg(long)]
    shift_observation: bool,
    /// Columns whose values are the observations of an episode one after the other, so that each row
    /// is an episode: patterns such as 'm_*', or the first and the last as Jan..Dec
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    wide: Vec<String>,
    /// How measured columns are divided, such as quality=4,speed=kmeans:8,hour=category: N or
    /// quantile:N, uniform:N, kmeans:N, cuts:X/Y/…, category, category:N, auto; columns that are
    /// divided together are joined by +
    #[arg(long, value_name = "COLUMN=BINS", value_delimiter = ',')]
    bins: Vec<String>,
    /// Texts that stand for a missing value [default: NA,NaN,nan,null,None,?,N/A,n/a,#N/A,<NA>,NULL,NaT]; an
    /// empty cell always does
    #[arg(long, value_name = "TEXTS", allow_hyphen_values = true)]
    missing: Option<String>,
}

impl SchemaArgs {
    /// The file of the schema.
    pub fn file(&self) -> Option<PathBuf> {
        self.schema.clone()
    }

    /// The schema of file and flags.
    pub fn schema(&self) -> anyhow::Result<Schema> {
        let mut schema = self.schema.as_ref().map(read).transpose()?.unwrap_or_default();
        let names = |flag: &Option<String>, of: &mut Option<Vec<String>>| {
            if let Some(text) = flag {
                *of = Some(split_names(text));
            }
        };
        names(&self.episode, &mut schema.episode);
        names(&self.group, &mut schema.group);
        names(&self.step, &mut schema.step);
        names(&self.sort, &mut schema.sort);
        names(&self.action, &mut schema.action);
        names(&self.observation, &mut schema.observation);
        names(&self.reward, &mut schema.reward);
        names(&self.terminated, &mut schema.terminated);
        names(&self.truncated, &mut schema.truncated);
        names(&self.action_prob, &mut schema.action_prob);
        names(&self.action_logp, &mut schema.action_logp);
        names(&self.available, &mut schema.available);
        names(&self.elapsed, &mut schema.elapsed);
        names(&self.missing, &mut schema.missing);
        for (flag, of) in [(&self.elapsed_bins, &mut schema.elapsed_bins), (&self.wide, &mut schema.wide)] {
            if !flag.is_empty() {
                of.clone_from(flag);
            }
        }
        schema.shift_observation |= self.shift_observation;
        schema.bins.extend(self.bins.iter().map(|text| column_bins(text)).collect::<anyhow::Result<BTreeMap<_, _>>>()?);
        Ok(schema)
    }
}

/// Reads `speed=kmeans:8`.
fn column_bins(text: &str) -> anyhow::Result<(String, Bins)> {
    let (column, bins) =
        text.split_once('=').ok_or_else(|| anyhow!("--bins {text}: write COLUMN=BINS, such as speed=kmeans:8"))?;
    let bins = bins.parse().map_err(|problem: String| anyhow!("--bins {column}={bins}: {problem}"))?;
    Ok((column.to_string(), bins))
}

fn read(path: &PathBuf) -> anyhow::Result<Schema> {
    let text = fs::read_to_string(path).map_err(foretell::Error::io("read", path))?;
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map(|span| format!(" line {}", text[..span.start.min(text.len())].matches('\n').count() + 1));
        let problem = e.message().replace('\n', ", ");
        let line = line.unwrap_or_default();
        anyhow!("{}{line}: {problem}; keys are flags with underscores, such as episode = \"user_id\"", path.display())
    })
}

/// The flags that say the same as a schema.
pub fn flags(schema: &Schema) -> String {
    let mut flags: Vec<String> = Vec::new();
    let mut add = |name: &str, value: String| {
        let equals = if value.starts_with('-') { '=' } else { ' ' };
        flags.push(format!("--{name}{equals}{}", quoted(&value)));
    };
    for (name, given) in [
        ("episode", &schema.episode),
        ("group", &schema.group),
        ("step", &schema.step),
        ("sort", &schema.sort),
        ("action", &schema.action),
        ("observation", &schema.observation),
        ("reward", &schema.reward),
        ("terminated", &schema.terminated),
        ("truncated", &schema.truncated),
        ("action-prob", &schema.action_prob),
        ("action-logp", &schema.action_logp),
        ("available", &schema.available),
        ("elapsed", &schema.elapsed),
        ("missing", &schema.missing),
    ] {
        given.iter().for_each(|names| add(name, join_names(names)));
    }
    for (name, list) in [("elapsed-bins", &schema.elapsed_bins), ("wide", &schema.wide)] {
        if !list.is_empty() {
            add(name, list.join(","));
        }
    }
    if !schema.bins.is_empty() {
        add("bins", schema.bins.iter().map(|(column, bins)| format!("{column}={bins}")).collect::<Vec<_>>().join(","));
    }
    if schema.shift_observation {
        flags.push("--shift-observation".into());
    }
    flags.join(" ")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.,=:+/".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_the_same_as_a_schema() {
        let schema = Schema {
            episode: Some(vec!["user id".into()]),
            action: Some(vec![]),
            bins: [("x".to_string(), Bins::Quantiles(4))].into(),
            wide: vec!["m_*".into()],
            ..Schema::default()
        };
        assert_eq!(flags(&schema), "--episode 'user id' --action none --wide 'm_*' --bins x=quantile:4");
    }

    #[test]
    fn a_file_may_say_what_flags_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs.toml");
        fs::write(&path, "episode = \"user\"\naction = \"none\"\nobservation = [\"mood\", \"sleep\"]\n[bins]\nsleep = \"4\"\n")
            .unwrap();
        let args = SchemaArgs { schema: Some(path.clone()), observation: Some("mood".into()), ..SchemaArgs::default() };
        let schema = args.schema().unwrap();
        assert_eq!(flags(&schema), "--episode user --action none --observation mood --bins sleep=quantile:4");
        fs::write(&path, "episode = \"user\"\nactoin = \"x\"\n").unwrap();
        let said = args.schema().unwrap_err().to_string();
        assert!(said.contains("line 2") && said.contains("actoin"), "{said}");
    }
}
