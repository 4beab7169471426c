// SPDX-License-Identifier: Apache-2.0
// How a pod of Kubernetes shows to which job it belongs: the labels and annotations of the systems
// that make pods of training jobs, in one table. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rollcall {

// The labels and annotations of a pod. Systems write some of their names into both.
struct PodMarks {
  std::map<std::string, std::string> labels, annotations;

  // The label of this name, else the annotation; empty if neither exists.
  std::string Find(const std::string& name) const;
};

// One system that makes pods of jobs.
struct JobSource {
  const char* system;            // for people
  const char* name;              // the label or annotation with the job's name
  const char* group;             // the label of the group, if each group is a job, or empty
  const char* attempt;           // the label or annotation with the number of restarts, or empty
  const char* attempt_variable;  // the environment variable that passes it on
};

// Ordered by their weight: where several made a pod, the first names the job. A TrainJob makes a
// JobSet, which makes Jobs, and all have put their label on the pod.
const std::vector<JobSource>& JobSources();

// Whether the text can go into a variable of each container, as the names of objects can: what a
// stranger sends may be megabytes.
bool IsName(const std::string& text);

// What the owners and labels of one pod show about its job.
struct PodJob {
  const JobSource* source = nullptr;  // nullptr if the pod is a job of its own
  std::string name;                   // of the job; empty means the pod's own
  std::string group_label;            // empty if the job has no groups
  std::string attempt;                // decimal digits; empty if unknown
  std::string attempt_variable;
};
PodJob FindPodJob(const PodMarks& marks);

}  // namespace rollcall
