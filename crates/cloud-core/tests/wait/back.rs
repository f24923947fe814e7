//! Waiting for those who come back after a rebuild or a reboot.

use crate::wait::{launch, poll, reached};
use cloud_core::memory::{InjectedFault, MemoryCloud, Settings, Span};
use cloud_core::{
    ErrorKind, ImageId, InstanceState, Operation, Poll, Provider as _, ProviderExt as _, Reboot,
    WaitOutcome,
};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_rebuilt_instance_was_called_running_as_it_was_before() {
    let cloud = MemoryCloud::new(Settings::default());
    let ids = launch(&cloud, 2).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let image = ImageId::new("image-2");
    cloud.rebuild(&ids[0], &image).await.expect("success");
    cloud.rebuild(&ids[1], &image).await.expect("success");
    let waited = cloud.wait_back(&ids, Some(&image), poll()).await;
    assert_eq!(reached(&waited), 2);
    for instance in cloud.instances() {
        assert_eq!((instance.state, instance.image), (InstanceState::Running, Some(image.clone())));
        assert_eq!(cloud.boots(&instance.id), Some(2));
    }
    let (first, second) = (&ids[0], &ids[1]);
    cloud.reboot(first, Reboot::Hard).await.expect("success");
    let waited = cloud.wait_back(std::slice::from_ref(first), None, poll()).await;
    assert_eq!((reached(&waited), cloud.boots(first)), (1, Some(3)));
    let short = Poll::until(Duration::from_secs(20));
    let old = ImageId::new("image-1");
    let waited = cloud.wait_back(std::slice::from_ref(second), Some(&old), short).await;
    let outcome = waited.outcomes.get(second);
    assert!(matches!(outcome, Some(WaitOutcome::TimedOut(Some(_)))), "not that image: {outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_come_back_has_its_outcome() {
    let mut settings = Settings::default();
    settings.linger = Duration::ZERO;
    settings.terminate = Span::zero();
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 3).await;
    assert!(cloud.force(&ids[0], InstanceState::Failed));
    cloud.terminate(&ids[1]).await.expect("success");
    cloud.inject(Operation::Get, InjectedFault::Refuse(ErrorKind::Forbidden));
    let waited = cloud.wait_back(&ids, None, poll()).await;
    assert!(matches!(waited.outcomes.get(&ids[0]), Some(WaitOutcome::Lost(_))));
    assert_eq!(waited.outcomes.get(&ids[1]), Some(&WaitOutcome::Gone));
    assert_eq!(reached(&waited), 1);
    cloud.inject_randomly(Some(Operation::Get), InjectedFault::Refuse(ErrorKind::Forbidden), 1.0);
    let waited = cloud.wait_back(&ids, None, poll()).await;
    assert!(waited.outcomes.values().all(|outcome| *outcome == WaitOutcome::Unknown(None)));
}
