//! Findings for people: the source line with a marker, notes and help.
