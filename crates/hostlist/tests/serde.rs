//! Lists and names in JSON.

use hostlist::{Hostlist, NodeName};

#[test]
fn a_list_is_its_expression() {
    let list: Hostlist = serde_json::from_str(r#""n[1-3],login1""#).unwrap();
    assert_eq!(list.len(), 4);
    assert_eq!(serde_json::to_string(&list).unwrap(), r#""n[1-3],login1""#);
}

#[test]
fn ranges_too_long_for_slurm_are_cut() {
    let list: Hostlist = "n[0-65535,65536-131071,131072]".parse().unwrap();
    assert_eq!(list.to_string(), "n[0-131072]");
    let json = serde_json::to_string(&list).unwrap();
    assert_eq!(json, r#""n[0-65535,65536-131071,131072]""#);
    assert_eq!(serde_json::from_str::<Hostlist>(&json).unwrap(), list);
}

#[test]
fn a_name_that_no_expression_can_spell_is_an_error() {
    let list: Hostlist = ["n1", "a,b"].into_iter().collect();
    let error = serde_json::to_string(&list).unwrap_err().to_string();
    assert_eq!(error, "the list has a name that no host-list expression can spell");
}

#[test]
fn errors_are_one_line_with_the_byte() {
    let error = serde_json::from_str::<Hostlist>(r#""n[5-1]""#).unwrap_err().to_string();
    assert_eq!(error, "range runs backwards at byte 2 at line 1 column 8");
    let error = serde_json::from_str::<Hostlist>("7").unwrap_err().to_string();
    assert!(error.contains("expected a host-list expression such as n[1-4,7]"), "{error}");
    assert!(serde_json::from_str::<NodeName>(r#""../x""#).is_err());
    let name: NodeName = serde_json::from_str(r#""n1""#).unwrap();
    assert_eq!(serde_json::to_string(&name).unwrap(), r#""n1""#);
}
