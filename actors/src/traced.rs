//! A message that carries the span in which it was sent, so that the steps of its handler belong to the same trace.

use actix::{Handler, Message};
use tracing::Span;

/// A message with the span of its sender.
#[derive(Debug)]
pub(crate) struct Traced<M> {
    message: M,
    span: Span,
}

impl<M> Traced<M> {
    /// Sent from the current span.
    pub(crate) fn new(message: M) -> Self {
        Self { message, span: sakshi_trace::current() }
    }
}

impl<M: Message> Message for Traced<M> {
    type Result = M::Result;
}

/// The handler runs in the span; so do the steps of the store that it begins before it returns.
pub(crate) fn handle<A, M>(actor: &mut A, Traced { message, span }: Traced<M>, ctx: &mut A::Context) -> <A as Handler<M>>::Result
where
    A: Handler<M>,
    M: Message,
{
    let _entered = span.enter();
    actor.handle(message, ctx)
}

macro_rules! handle_traced {
    ($([$($generic:ident),*] [$($bound:tt)*] $message:ty => $actor:ty;)+) => {$(
        impl<$($generic),*> actix::Handler<Traced<$message>> for $actor where $($bound)* {
            type Result = <Self as actix::Handler<$message>>::Result;

            fn handle(&mut self, message: Traced<$message>, ctx: &mut Self::Context) -> Self::Result {
                $crate::traced::handle(self, message, ctx)
            }
        }
    )+};
}
pub(crate) use handle_traced;
