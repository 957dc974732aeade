//! placeholder
use entourage_e2e::tests;
tests![];
