// SPDX-License-Identifier: Apache-2.0
#include "webhook/job_names.h"

#include <algorithm>

#include "webhook/pod_words.h"

namespace rollcall {
namespace {

constexpr size_t kLongestName = 253;  // of an object of Kubernetes
constexpr size_t kMostDigits = 9;     // as library and agent read them

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

void TakeAttempt(const std::string& number, const char* variable, PodJob* job) {
  if (!IsNumber(number)) return;
  job->attempt = number;
  job->attempt_variable = variable;
}

}  // namespace

std::string PodMarks::Find(const std::string& name) const {
  for (const auto* marks : {&labels, &annotations}) {
    const auto found = marks->find(name);
    if (found != marks->end()) return found->second;
  }
  return "";
}

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '$'; });
}

const std::vector<JobSource>& JobSources() {
  static const auto* const sources = new std::vector<JobSource>{
      {"the pod's author", kJobMark, "", "", ""},
      {"JobSet, Kubeflow Trainer v2", "jobset.sigs.k8s.io/jobset-name", "",
       "jobset.sigs.k8s.io/restart-attempt", "JOBSET_RESTART_ATTEMPT"},
      {"Kubeflow Trainer v1, MPI Operator", "training.kubeflow.org/job-name", "", "", ""},
      {"Volcano", "volcano.sh/job-name", "", "volcano.sh/job-version", "VOLCANO_JOB_VERSION"},
      {"RayJob of KubeRay", "ray.io/originated-from-cr-name", "", "", ""},
      {"RayCluster of KubeRay", "ray.io/cluster", "", "", ""},
      {"LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name",
       "leaderworkerset.sigs.k8s.io/group-index", "", ""},
      {"Kueue, groups of plain pods", "kueue.x-k8s.io/pod-group-name", "", "", ""},
      {"Job", "batch.kubernetes.io/job-name", "", "", ""},
  };
  return *sources;
}

PodJob FindPodJob(const PodMarks& marks) {
  PodJob job;
  for (const JobSource& source : JobSources()) {
    const std::string name = marks.Find(source.name);
    if (!IsName(name)) continue;
    job.source = &source;
    job.name = name;
    job.group_label = source.group;
    TakeAttempt(marks.Find(source.attempt), source.attempt_variable, &job);
    break;
  }
  TakeAttempt(marks.Find(kAttemptMark), "ROLLCALL_ATTEMPT", &job);
  return job;
}

}  // namespace rollcall
