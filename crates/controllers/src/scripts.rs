//! Scripts, run where they block no other task: one may take as long as its limit, and its thread has other tasks.

use std::{borrow::Cow, sync::Arc};

use entourage_core::interpreter::{
    customized::Engine,
    operations::Operation,
    question::{Answer, Question, Rule},
};
use entourage_lua::Lua;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// The engine of the controllers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scripts(Lua);

impl Engine for Scripts {
    fn compile(&self, name: &str, operation: Operation, source: &str) -> Result<Arc<dyn Rule>, String> {
        let rule = self.0.compile(name, operation, source)?;
        Ok(Arc::new(Aside(rule)))
    }
}

#[derive(Debug)]
struct Aside(Arc<dyn Rule>);

impl Rule for Aside {
    /// The other tasks of the thread move to another one meanwhile. A runtime with one thread has no other: the commands that
    /// read files have one, and no other tasks.
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>> {
        let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
        match flavor {
            Ok(RuntimeFlavor::MultiThread) => block_in_place(|| self.0.answer(question)),
            _ => self.0.answer(question),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_script_that_never_ends_holds_up_no_other_task() {
        let source = "function InterpretHealth(observedObj) while true do end end";
        let rule = Scripts::default()
            .compile("endless", Operation::Health, source)
            .unwrap();
        let asked = tokio::spawn(async move { rule.answer(Question::Health(&json!({}))).is_err() });
        let ticks = tokio::spawn(async {
            let mut longest = Duration::ZERO;
            for _ in 0..10 {
                let before = Instant::now();
                tokio::time::sleep(Duration::from_millis(5)).await;
                longest = longest.max(before.elapsed());
            }
            longest
        });
        assert!(
            ticks.await.unwrap() < Duration::from_millis(200),
            "a task waited for a script"
        );
        assert!(asked.await.unwrap());
    }
}
