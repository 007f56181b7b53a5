//! The DOT text.

use distlto_planner::emit::dot;

use super::samples;

#[test]
fn a_plan_with_odd_names() {
    let mut link = samples::link();
    link.output = "a\\N&lt;\"\n\u{1b}".into();
    let mut text = Vec::new();
    dot::write(&link.to_graph().expect("sound"), &mut text).expect("writing to a Vec does not fail");
    insta::assert_snapshot!(String::from_utf8(text).expect("the label is escaped"));
}
