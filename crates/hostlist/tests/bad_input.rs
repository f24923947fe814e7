//! Wrong and hostile expressions: an error with a place and a reason, or the right answer, at once.

use hostlist::{Dialect, ErrorKind, Hostlist, Parser};

#[test]
fn each_error_names_its_kind_and_byte() {
    for (expression, kind, position) in [
        ("n[1-3", ErrorKind::UnclosedBracket, 1),
        ("a,n]1-2[", ErrorKind::UnclosedBracket, 7),
        ("n[]", ErrorKind::EmptyItem, 2),
        ("n[1,,2]", ErrorKind::EmptyItem, 4),
        ("n[1,a]", ErrorKind::NotANumber, 4),
        ("n[1-10/2]", ErrorKind::NotANumber, 2),
        ("n[-5]", ErrorKind::NotANumber, 2),
        ("m,n[5-1]", ErrorKind::Reversed, 4),
        ("a[2-1]b[1]", ErrorKind::Reversed, 2),
        ("n[0-65536]", ErrorKind::RangeTooLarge, 2),
        ("n[0-18446744073709551615]", ErrorKind::RangeTooLarge, 2),
        ("r[1-40000,40001-70000]x[1]", ErrorKind::PrefixTooLarge, 2),
        ("a,n\0b", ErrorKind::Nul, 3),
        ("ok,r[0-65535]n[0-65535]", ErrorKind::TooManyHosts, 3),
        ("é[x]", ErrorKind::NotANumber, 3),
    ] {
        let error = expression.parse::<Hostlist>().unwrap_err();
        assert_eq!((error.kind(), error.position()), (kind, position), "{expression}");
    }
}

#[test]
fn wrong_steps_are_errors() {
    let parser = Parser::new().steps(true);
    for expression in
        ["n[1/2]", "n[1-9/0]", "n[1-9/]", "n[1-9/x]", "n[1-9/-2]", "n[1-9/2/2]", "n[/2]"]
    {
        assert_eq!(
            parser.parse(expression).unwrap_err().kind(),
            ErrorKind::NotANumber,
            "{expression}"
        );
    }
    let many = format!("n[{}1]", "0-65535/2,".repeat(20));
    assert_eq!(parser.parse(&many).unwrap_err().kind(), ErrorKind::TooManyItems);
}

#[test]
fn slurm_22_05_refuses_a_suffix() {
    let error = Hostlist::parse_with("n[1-2]-ib0", Dialect::V22_05).unwrap_err();
    assert_eq!((error.kind(), error.position()), (ErrorKind::Suffix, 6));
}

#[test]
fn the_caret_stands_under_the_place_in_a_long_expression() {
    let expression = format!("{}é[5-1],{}", "a,".repeat(100), "b,".repeat(100));
    let error = expression.parse::<Hostlist>().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    let caret = lines[2].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[0], "range runs backwards at byte 203");
    assert_eq!(lines[1].chars().skip(caret).take(3).collect::<String>(), "5-1");
    assert!(lines[1].chars().count() < 80, "{error}");
}

#[test]
fn bytes_that_are_not_utf8_are_placed() {
    let error = Parser::new().parse_bytes(b"n1,\xff2").unwrap_err();
    assert_eq!((error.kind(), error.position()), (ErrorKind::NotUtf8, 3));
}

#[test]
fn ten_megabytes_of_anything_are_answered() {
    const SIZE: usize = 10 << 20;
    let cases: [(&str, String, Option<usize>); 9] = [
        ("one name", "n".repeat(SIZE), Some(1)),
        ("only opening brackets", "[".repeat(SIZE), None),
        ("only closing brackets", "]".repeat(SIZE), Some(1)),
        ("never closed", "n[1,".repeat(SIZE / 4), None),
        ("commas", ",".repeat(SIZE), Some(0)),
        ("short names", "n1,".repeat(SIZE / 3), Some(SIZE / 3)),
        ("a bracket too full", format!("n[{}1]", "1,".repeat(SIZE / 2)), None),
        ("zeros", format!("n[{}1-9]", "0".repeat(SIZE)), Some(9)),
        ("a long name many times", format!("{}[0-65535]", "n".repeat(SIZE)), None),
    ];
    for (what, expression, hosts) in cases {
        let read = expression.parse::<Hostlist>();
        assert_eq!(
            read.as_ref().ok().map(Hostlist::len),
            hosts,
            "{what}: {:?}",
            read.as_ref().err()
        );
    }
}

#[test]
fn every_operation_on_a_hostile_list_ends() {
    let many_brackets = "[1]".repeat(1 << 14);
    let long_suffix = format!("n[001-125]{}", "s".repeat(1 << 14));
    let overlapping = format!("n[10000-65535]{}", ",n10000".repeat(50_000));
    let mixed = "n[1-9],n05,".repeat(20_000);
    let stems: Vec<String> = (0..50_000).map(|number| format!("x{number}y")).collect();
    let stems = stems.join(",");
    for (expression, hosts) in [
        (many_brackets.as_str(), 1),
        (&long_suffix, 125),
        (&overlapping, 55_536 + 50_000),
        (&mixed, 200_000),
        (&stems, 50_000),
        ("r[0-9999]n[0-9]-ib0", 100_000),
        ("r[0-9999]n[0-3]c[1-2]", 80_000),
    ] {
        let list: Hostlist = expression.parse().unwrap();
        let wanted = list.iter().last().unwrap();
        let looks = if wanted.len() > 100 { 10 } else { 2000 };
        assert_eq!(list.len(), hosts);
        assert_eq!(list.sorted().len(), hosts);
        assert!((0..looks).all(|_| list.contains(&wanted)));
        assert!(list.difference(&list).is_empty());
        assert_eq!(list.union(&list).to_string(), list.union(&Hostlist::new()).to_string());
        let mut bytes = 0;
        list.for_each(|name| bytes += name.len());
        assert!(bytes >= hosts, "{}", list.uniq().len());
    }
}

#[test]
fn many_brackets_are_counted_without_being_expanded() {
    let parser = Parser::new().max_hosts(u64::MAX).max_bytes(u64::MAX);
    let list = parser.parse("a[0-65535]b[0-65535]c[0-65535]").unwrap();
    assert_eq!(list.len(), 1 << 48);
    assert_eq!(list.iter().nth(1).as_deref(), Some("a0b0c1"));
    let endless = format!("n{}", "[0-9]".repeat(1000));
    assert_eq!(endless.parse::<Hostlist>().unwrap_err().kind(), ErrorKind::TooManyHosts);
    assert_eq!(parser.parse(&endless).unwrap().len(), usize::MAX);
}

#[test]
fn a_bound_is_on_the_whole_expression() {
    let parser = Parser::new().max_hosts(10);
    assert_eq!(parser.parse("n[1-5],m[1-5]").unwrap().len(), 10);
    let error = parser.parse("n[1-5],m[1-5],x").unwrap_err();
    assert_eq!((error.kind(), error.position()), (ErrorKind::TooManyHosts, 14));
    let error = Parser::new().max_bytes(9).parse("n[8-11],m[1-2]").unwrap_err();
    assert_eq!((error.kind(), error.position()), (ErrorKind::TooManyBytes, 0));
}
