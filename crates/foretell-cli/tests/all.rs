//! All tests of the command line through its binary, as one program: each more would be linked by itself.

mod cli;
mod diagnose;
mod failures;
mod faults;
mod kill;
mod many_files;
mod outputs;
mod report;
mod search;
mod strangers;
mod support;
mod tables;
mod updates;
