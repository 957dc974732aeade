//! The flags of traces, of the commands that run for long.

use clap::Args;
use entourage_controllers::{
    lease,
    traces::{Endpoint, TraceOptions},
};

/// The options of traces.
#[derive(Args, Clone, Debug)]
pub struct TraceArgs {
    /// Address of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318: spans are sent there (default:
    /// no traces)
    #[arg(long, value_name = "URL")]
    pub trace_endpoint: Option<Endpoint>,

    /// Share of plans, changes and reviews that are traced, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1", requires = "trace_endpoint")]
    pub trace_ratio: f64,
}

impl TraceArgs {
    /// The options, if traces are on; `service` names this process.
    #[must_use]
    pub fn options(&self, service: &'static str) -> Option<TraceOptions> {
        Some(TraceOptions {
            endpoint: self.trace_endpoint.clone()?,
            ratio: self.trace_ratio,
            service,
            instance: lease::identity(),
        })
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a number from 0 to 1, such as 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        traces: TraceArgs,
    }

    fn parse(line: &str) -> Result<Option<TraceOptions>, String> {
        let parsed = Line::try_parse_from(format!("x {line}").split_whitespace());
        parsed
            .map(|line| line.traces.options("x"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn without_an_address_there_are_no_traces() {
        assert!(parse("").unwrap().is_none());
        assert!(parse("--trace-ratio 0.5").is_err());
    }

    #[test]
    fn the_path_of_otlp_is_added_to_the_address() {
        for (given, wanted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://collector.example.com/otlp/",
                "https://collector.example.com/otlp/v1/traces",
            ),
        ] {
            let options = parse(&format!("--trace-endpoint {given} --trace-ratio 0.1"));
            let options = options.unwrap().unwrap();
            assert_eq!(
                (format!("{:?}", options.endpoint).as_str(), options.ratio),
                (wanted, 0.1)
            );
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for wrong in [
            "--trace-endpoint 127.0.0.1:4318",
            "--trace-endpoint ftp://x",
            "--trace-endpoint http://user:password@x",
            "--trace-endpoint http://x?y",
            "--trace-endpoint http://x --trace-ratio 2",
            "--trace-endpoint http://x --trace-ratio NaN",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.contains("give "), "{wrong}: {error}");
        }
    }
}
