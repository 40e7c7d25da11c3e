//! No file takes more memory or time than its size explains, and each limit has a message.
#![cfg(feature = "parquet")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray};
use flate2::Compression;
use flate2::write::GzEncoder;
use foretell::limits::{COLUMNS, LINE, NAME, RATIO, REWARD, UNPACKED};
use foretell::log::Notes;
use foretell::{Alphabet, Logs, OnBadEpisode, ReadOptions, Result};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Packed, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

fn read(path: &Path) -> Result<(usize, Notes)> {
    let mut reader = Logs::files([path], ReadOptions::default()).open(Alphabet::default())?;
    let steps = reader.by_ref().map(|z| z.map(|z| z.steps.len())).sum::<Result<usize>>()?;
    Ok((steps, reader.notes().clone()))
}

/// What is said of a file with this content.
fn refused(name: &str, content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    read(&path).unwrap_err().to_string()
}

#[test]
fn a_line_is_read_up_to_a_limit() {
    for name in ["endless.jsonl", "endless.csv"] {
        let head: &[u8] =
            if name.ends_with("csv") { b"action,observation\nN,x\n" } else { b"{\"action\":1,\"observation\":1}\n" };
        let said = refused(name, &[head, &vec![b'{'; LINE + 100_000]].concat());
        assert!(said.contains(" line ") && said.contains("a line of more than 16 MiB; "), "{said}");
    }
}

#[test]
fn a_name_has_a_limit() {
    let long = "x".repeat(NAME + 1);
    let said = refused("long.csv", format!("action,observation\nN,x\nN,{long}\n").as_bytes());
    assert!(said.contains("long.csv line 3: observation is a name of 65537 bytes, and names can have 65536; give it"), "{said}");
    let said = refused("long.jsonl", format!("{{\"action\":\"{long}\",\"observation\":1}}\n").as_bytes());
    assert!(said.contains("line 1: action is a name of 65537 bytes"), "{said}");
    let said = refused("header.csv", format!("action,observation,{long}\nN,x,1\n").as_bytes());
    assert!(said.contains("line 1: the name of a column, \"xxx") && said.contains("shorter name"), "{said}");
    let parts = (0..3).map(|i| format!("obs_{i}")).collect::<Vec<_>>().join(",");
    let said = refused("parts.csv", format!("action,{parts}\nN,{}\n", vec!["y".repeat(NAME / 2); 3].join(",")).as_bytes());
    assert!(said.contains("line 2: the observation has 98306 bytes"), "{said}");
    let whole = format!("action,observation\nN,{}\n", "x".repeat(NAME));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("whole.csv"), whole).unwrap();
    assert_eq!(read(&folder.path().join("whole.csv")).unwrap().0, 1);
}

#[test]
fn columns_have_a_limit_and_take_time_in_proportion() {
    let names = |n: usize| (0..n).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    let said = refused("wide.csv", format!("action,observation,{}\n", names(COLUMNS)).as_bytes());
    assert!(said.contains("line 1: 65538 columns, of which there can be 65536; leave out"), "{said}");
    let row = |i: usize| format!("{{\"action\":1,\"observation\":1,\"k{i}\":0}}\n");
    let said = refused("keys.jsonl", (0..COLUMNS).map(row).collect::<String>().as_bytes());
    assert!(said.contains("line 65535: 65537 columns"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.jsonl");
    // With work in proportion to rows times keys this would take an hour.
    fs::write(&path, (0..60_000).map(row).collect::<String>()).unwrap();
    let started = Instant::now();
    let (steps, notes) = read(&path).unwrap();
    assert_eq!((steps, notes.ignored_columns.len()), (60_000, 60_000));
    let sorted = ReadOptions { schema: Arc::new(serde_json::from_str(r#"{"sort": "row"}"#).unwrap()), ..ReadOptions::default() };
    assert_eq!(Logs::files([&path], sorted).open(Alphabet::default()).unwrap().count(), 1);
    Logs::files([&path], ReadOptions::default()).guess().unwrap().unwrap();
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn a_packed_file_unpacks_to_no_more_than_its_size_explains() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(b"action,observation\n").unwrap();
    let rows = b"N,x\n".repeat(1 << 18);
    for _ in 0..2 * UNPACKED / rows.len() as u64 {
        gzip.write_all(&rows).unwrap();
    }
    let bomb = gzip.finish().unwrap();
    assert!(bomb.len() as u64 * RATIO < 2 * UNPACKED);
    let said = refused("bomb.csv.gz", &bomb);
    assert!(said.contains("bytes unpack to more than") && said.contains("unpack it, and give the unpacked file"), "{said}");
}

fn packed() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Packed::ZSTD(ZstdLevel::try_new(3).unwrap()))
}

/// A table of that observations, a number of times.
fn parquet(path: &Path, observations: ArrayRef, times: usize, properties: WriterPropertiesBuilder) {
    let actions: ArrayRef = Arc::new(StringArray::from(vec!["N"; observations.len()]));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("action", actions, false), ("observation", observations, true)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties.build())).unwrap();
    (0..times).for_each(|_| writer.write(&batch).unwrap());
    writer.close().unwrap();
}

/// What is said of such a table.
fn refused_parquet(observations: ArrayRef, times: usize, properties: WriterPropertiesBuilder) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walks.parquet");
    parquet(&path, observations, times, properties);
    assert!(fs::metadata(&path).unwrap().len() < 1 << 18);
    read(&path).unwrap_err().to_string()
}

#[test]
fn a_name_in_parquet_has_a_limit_before_it_is_in_memory() {
    let names = |names: [String; 2]| Arc::new(StringArray::from(names.to_vec()));
    let plain = || packed().set_dictionary_enabled(false);
    let said = refused_parquet(names(["x".into(), "y".repeat(NAME + 1)]), 1, plain());
    assert!(said.contains("row 2: observation is a name of 65537 bytes"), "{said}");
    let said = refused_parquet(names(["x".into(), "z".repeat(UNPACKED as usize + (1 << 20))]), 1, plain());
    assert!(said.contains("walks.parquet: its ") && said.contains("unpack to more than 67108864"), "{said}");
    // A dictionary, or a prefix of other strings, would be repeated in every row.
    let said = refused_parquet(names(["x".into(), "y".repeat(NAME + 1)]), 1, packed());
    assert!(said.contains("a page has a name of 65537 bytes, of which there can be 65536"), "{said}");
    let shared = names(["y".repeat(NAME / 2), "y".repeat(NAME + 1)]);
    let said = refused_parquet(shared, 1, plain().set_encoding(Encoding::DELTA_BYTE_ARRAY));
    assert!(said.contains("a page has a name of 65537 bytes, of which there can be 65536"), "{said}");
}

#[test]
fn a_page_of_parquet_is_no_larger_than_its_size_explains() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walks.parquet");
    let names = Arc::new(StringArray::from(vec!["y".repeat(60_000); 40]));
    parquet(&path, names, 1, packed().set_dictionary_enabled(false));
    assert_eq!(read(&path).unwrap().0, 40);
    // The header of a page: its type, and its size in four bytes, of which the last is the largest.
    let mut file = fs::read(&path).unwrap();
    let is_header = |at: &[u8]| matches!(at, [0x15, 0, 0x15, 128..=255, 128..=255, 128..=255, 0..=127, 0x15]);
    let header = file.windows(8).position(is_header).unwrap();
    file[header + 6] = 0x7f;
    let said = refused("larger.parquet", &file);
    assert!(said.contains("larger.parquet: its ") && said.contains(" bytes unpack to more than 16777216"), "{said}");
    // A number of more bytes than any has.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/crashes/parquet/page-size");
    let schema = Arc::new(serde_json::from_str(r#"{"observation": "action_tion"}"#).unwrap());
    let mut reader = Logs::files([path], ReadOptions { schema, ..ReadOptions::default() }).open(Alphabet::default()).unwrap();
    let said = reader.next().unwrap().unwrap_err().to_string();
    assert!(said.contains("the Parquet file is broken") && said.contains("it has a number without an end"), "{said}");
}

/// A list of booleans takes no bytes, however many it says that it has.
#[test]
fn a_list_in_parquet_takes_time_in_proportion() {
    let file = include_bytes!("../../../fuzz/corpus/parquet/seed-0");
    let (rest, size) = file.split_at(file.len() - 8);
    let size = u32::from_le_bytes(*size.first_chunk().unwrap()) as usize;
    let (rest, footer) = rest.split_at(rest.len() - size);
    // A field that nobody knows, with 2^31 - 1 booleans, in place of the end.
    let longer = [&footer[..size - 1], &[0xf9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]].concat();
    let size = (longer.len() as u32).to_le_bytes();
    let started = Instant::now();
    let said = refused("list.parquet", &[rest, &longer, &size, b"PAR1"].concat());
    assert!(said.contains("the Parquet file is broken (it has a list of booleans)"), "{said}");
    assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
}

#[test]
fn rows_that_take_no_bytes_have_a_limit() {
    let said = refused_parquet(Arc::new(StringArray::from(vec!["x"; 1 << 20])), 9, packed());
    assert!(said.contains("unpack to more than 67108864"), "{said}");
}

#[test]
fn values_of_fixed_length_have_a_limit() {
    let values = FixedSizeBinaryArray::try_from_iter([[b'x'; 5000]].into_iter()).unwrap();
    let said = refused_parquet(Arc::new(values), 1, packed());
    assert!(said.contains("a page has values of 5000 bytes each"), "{said}");
}

#[test]
fn every_encoding_of_strings_is_read() {
    let words = (0..5000).map(|i| (i % 7 > 0).then(|| format!("{}{}", "left".repeat(i % 3), i * i % 900)));
    let text: ArrayRef = Arc::new(words.clone().collect::<StringArray>());
    let mut lists = ListBuilder::new(StringBuilder::new());
    words.clone().for_each(|word| lists.append_value([word.or(Some("none".into())), Some("b".into())]));
    let lists: ArrayRef = Arc::new(lists.finish());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walks.parquet");
    for observations in [text, lists] {
        let mut all = Vec::new();
        for encoding in [None, Some(Encoding::PLAIN), Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(Encoding::DELTA_BYTE_ARRAY)] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let properties =
                    packed().set_writer_version(version).set_data_page_row_count_limit(700).set_write_batch_size(100);
                let properties = match encoding {
                    Some(encoding) => properties.set_dictionary_enabled(false).set_encoding(encoding),
                    None => properties,
                };
                parquet(&path, observations.clone(), 2, properties);
                let mut reader = Logs::files([&path], ReadOptions::default()).open(Alphabet::default()).unwrap();
                let episodes: Vec<_> = reader.by_ref().map(|z| z.unwrap().steps).collect();
                all.push((episodes, reader.alphabet().clone()));
            }
        }
        assert_eq!(all[0].0.iter().map(Vec::len).sum::<usize>(), 10_000);
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn numbers_that_overflow_are_refused_where_they_are_read() {
    for (reward, word) in [("1e308", "1e308"), ("-1e51", "-1e51")] {
        let said = refused("reward.csv", format!("action,observation,reward\nN,x,0\nN,x,{reward}\n").as_bytes());
        assert!(said.contains("line 3: reward ") && said.contains(word) && said.contains("in another unit"), "{said}");
    }
    let said = refused("probability.csv", b"action,observation,action_prob\nN,x,1e-300\n");
    assert!(said.contains("line 2: action_prob 1e-300 is below 1e-50") && said.contains("importance sampling"), "{said}");
    let said = refused("logarithm.csv", b"action,observation,action_logp\nN,x,-700\n");
    assert!(said.contains("line 2: action_logp") && said.contains("is below 1e-50"), "{said}");
    assert!((REWARD * REWARD * 1e9).is_finite());
}

#[test]
fn a_log_that_changes_between_and_in_passes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walks.csv");
    // Longer than what is read at once.
    let row = |i: usize| format!("{},{},N,wall\n", i / 10, i % 10);
    fs::write(&path, "episode_id,step,action,observation\n".to_string() + &(0..100_000).map(row).collect::<String>()).unwrap();
    let options = ReadOptions { on_bad: OnBadEpisode::Skip, ..ReadOptions::default() };
    let logs = Logs::files([&path], options);
    let clone = logs.clone().fitted().unwrap();
    let mut reader = logs.open(Alphabet::default()).unwrap();
    reader.next().unwrap().unwrap();
    File::options().append(true).open(&path).unwrap().write_all(b"10000,0,N,lava\n").unwrap();
    let errors: Vec<String> = reader.filter_map(|z| z.err().map(|error| error.to_string())).collect();
    assert!(errors.len() == 1 && errors[0].contains("walks.csv: it changed while it was read, from "), "{errors:?}");
    for logs in [&logs, &clone] {
        let said = logs.open(Alphabet::default()).err().unwrap().to_string();
        assert!(
            said.contains("it changed while it was read, from ") && said.contains("wait until nothing writes to it"),
            "{said}"
        );
    }
}

#[test]
fn csv_holds_no_formulas_and_every_name_comes_back() {
    use foretell::{ActionObservation, End, Trajectory, Writer};
    let mut alphabet = Alphabet::default();
    let names = ["=cmd|'/C calc'!A0", "'=1", "@x", "-left", "-1", "plain", "'tis", "two\nlines"];
    let steps: Vec<ActionObservation> = (0..)
        .zip(names)
        .map(|(i, name)| {
            alphabet.intern_action(name);
            alphabet.intern_observation(name);
            ActionObservation::new(i, i)
        })
        .collect();
    let z = Trajectory {
        rewards: vec![Some(-1.5); steps.len()],
        steps,
        action_probabilities: vec![],
        end: End::Truncated,
        about: Default::default(),
    };
    let folder = tempfile::tempdir().unwrap();
    for verbatim in [false, true] {
        let path = folder.path().join("walks.csv");
        let writer = Writer::create(&path).unwrap();
        let mut writer = if verbatim { writer.verbatim() } else { writer };
        writer.write(&alphabet, &z).unwrap();
        writer.finish().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let is_formula =
            |cell: &str| cell.trim_start_matches('"').starts_with(['=', '@']) || cell.trim_start_matches('"').starts_with("-l");
        assert_eq!(text.split([',', '\n']).any(is_formula), verbatim, "{text}");
        let mut reader = Logs::files([&path], ReadOptions::default()).open(Alphabet::default()).unwrap();
        let found = reader.next().unwrap().unwrap();
        let found: Vec<String> = found.steps.iter().map(|ao| reader.alphabet().action_name(ao.action).to_string()).collect();
        let expected: Vec<&str> = names.iter().map(|name| if verbatim && *name == "'=1" { "=1" } else { name }).collect();
        assert_eq!(found, expected);
    }
}
