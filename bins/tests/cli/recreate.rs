//! Images that the cloud cannot replace in place.

use crate::fixture::{Fixture, answer};
use cloud_sim::Rule;

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn a_node_whose_image_cannot_be_replaced_is_recreated_by_the_reboot_program() {
    let stage = Fixture::new().running();
    let image = |name: &str| format!("ocid1.image.oc1.phx.{name}");
    let configure = |name: &str| {
        let text = format!("{}image_id: {}\n", stage.configuration(), image(name));
        stage.write("startnode.yaml", &text);
    };
    configure("img001");
    stage.run("startnode", &[NODE]).with_code(0);
    let before = stage.machine(NODE);
    configure("new");
    let refuse = answer(400, "InvalidParameter", "this operation is not supported for the shape");
    stage.cloud().add_fault(Rule::once("UpdateInstance", refuse)).unwrap();
    stage.run("rebuild", &[NODE]).with_code(0);
    let after = stage.machine(NODE);
    assert_ne!(after.id, before.id);
    assert_eq!(after.image_id, Some(image("new")));
    assert_eq!(stage.live(), [NODE]);
}
