//! All tests of the library through its public interface, as one program: each more would be linked by itself.

mod available;
mod bad_logs;
mod bad_models;
mod classics;
mod diagnose;
mod domains;
mod dp;
mod ensemble;
mod exact;
mod imports;
mod logs;
mod messy_tables;
mod migration;
mod models;
mod moments;
mod off_policy;
mod planning;
mod pocman;
mod pomdp;
mod quality;
mod refine;
mod scores;
mod select;
mod solve;
mod tables;
mod trees;
