//! How far an analysis, a metric or a measurement is.

use std::fmt;

use crate::api::constants::analysis_phase;

/// How far it is, from best to worst once it is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nobody has looked at it.
    #[default]
    Unset,
    /// As hoped.
    Successful,
    /// Under way.
    Running,
    /// Not begun.
    Pending,
    /// Neither success nor failure.
    Inconclusive,
    /// It could not be done.
    Error,
    /// Not as hoped.
    Failed,
}

impl Phase {
    /// The phase of a word.
    pub fn of(word: &str) -> Phase {
        match word {
            analysis_phase::PENDING => Phase::Pending,
            analysis_phase::RUNNING => Phase::Running,
            analysis_phase::SUCCESSFUL => Phase::Successful,
            analysis_phase::FAILED => Phase::Failed,
            analysis_phase::ERROR => Phase::Error,
            analysis_phase::INCONCLUSIVE => Phase::Inconclusive,
            _ => Phase::Unset,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Unset => "",
            Phase::Pending => analysis_phase::PENDING,
            Phase::Running => analysis_phase::RUNNING,
            Phase::Successful => analysis_phase::SUCCESSFUL,
            Phase::Failed => analysis_phase::FAILED,
            Phase::Error => analysis_phase::ERROR,
            Phase::Inconclusive => analysis_phase::INCONCLUSIVE,
        }
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        match self {
            Phase::Unset | Phase::Pending | Phase::Running => false,
            Phase::Successful | Phase::Failed | Phase::Error | Phase::Inconclusive => true,
        }
    }

    /// Whether it could not be done, or was not as hoped.
    pub fn is_bad(self) -> bool {
        match self {
            Phase::Failed | Phase::Error => true,
            Phase::Unset | Phase::Pending | Phase::Running | Phase::Successful | Phase::Inconclusive => false,
        }
    }

    /// Whether this is worse than another.
    pub fn is_worse_than(self, other: Phase) -> bool {
        // What nobody looked at is as good as what went well.
        self.max(Phase::Successful) > other.max(Phase::Successful)
    }

    /// The worse of two; the first of two that are alike.
    pub fn worse(self, other: Phase) -> Phase {
        if other.is_worse_than(self) { other } else { self }
    }

    /// The reason of the event that tells that an AnalysisRun is there.
    pub fn run_reason(self) -> &'static str {
        match self {
            Phase::Unset => "AnalysisRun",
            Phase::Pending => "AnalysisRunPending",
            Phase::Running => "AnalysisRunRunning",
            Phase::Successful => "AnalysisRunSuccessful",
            Phase::Failed => "AnalysisRunFailed",
            Phase::Error => "AnalysisRunError",
            Phase::Inconclusive => "AnalysisRunInconclusive",
        }
    }

    /// The reason of the event that tells that an Experiment is there.
    pub fn experiment_reason(self) -> &'static str {
        match self {
            Phase::Unset => "Experiment",
            Phase::Pending => "ExperimentPending",
            Phase::Running => "ExperimentRunning",
            Phase::Successful => "ExperimentSuccessful",
            Phase::Failed => "ExperimentFailed",
            Phase::Error => "ExperimentError",
            Phase::Inconclusive => "ExperimentInconclusive",
        }
    }

    /// The reason of the event that tells that a metric is there.
    pub fn metric_reason(self) -> &'static str {
        match self {
            Phase::Unset => "Metric",
            Phase::Pending => "MetricPending",
            Phase::Running => "MetricRunning",
            Phase::Successful => "MetricSuccessful",
            Phase::Failed => "MetricFailed",
            Phase::Error => "MetricError",
            Phase::Inconclusive => "MetricInconclusive",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::constants::reason;

    const ALL: [Phase; 7] = [
        Phase::Unset,
        Phase::Pending,
        Phase::Running,
        Phase::Successful,
        Phase::Failed,
        Phase::Error,
        Phase::Inconclusive,
    ];

    #[test]
    fn words_and_reasons_are_those_of_the_constants() {
        for phase in ALL {
            assert_eq!(Phase::of(phase.as_str()), phase);
            assert_eq!(phase.run_reason(), reason::analysis_run(phase.as_str()));
            assert_eq!(phase.metric_reason(), reason::metric(phase.as_str()));
            assert_eq!(phase.experiment_reason(), reason::experiment(phase.as_str()));
        }
        assert_eq!(Phase::of("Odd"), Phase::Unset);
    }
}
