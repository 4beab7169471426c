// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/incident_facts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "daemon/history/history.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 200;  // of a value
constexpr int64_t kMillisecond = 1'000'000;

// A folder of Python's packages and the framework that it belongs to. A framework comes before
// those that it is built on.
struct Framework {
  const char* folder;
  const char* name;
};
constexpr Framework kFrameworks[] = {
    {"/nemo/", "NeMo"},
    {"/megatron/", "Megatron-LM"},
    {"/deepspeed/", "DeepSpeed"},
    {"/colossalai/", "Colossal-AI"},
    {"/composer/", "Composer"},
    {"/torchtitan/", "TorchTitan"},
    {"/lightning/", "Lightning"},
    {"/pytorch_lightning/", "Lightning"},
    {"/vllm/", "vLLM"},
    {"/sglang/", "SGLang"},
    {"/transformers/", "Transformers"},
    {"/accelerate/", "Accelerate"},
    {"/horovod/", "Horovod"},
    {"/jax/", "JAX"},
    {"/tensorflow/", "TensorFlow"},
    {"/torch/", "PyTorch"},
};

std::string Cut(absl::string_view text) {
  std::string cut(text.substr(0, kMostBytes));
  while (!cut.empty() && !IsUtf8(cut)) cut.pop_back();
  return cut;
}

// "train.py:212 in validate" for "/x/train.py:212 in validate".
std::string SiteWithoutFolder(absl::string_view site) {
  const size_t slash = site.substr(0, site.find(" in ")).rfind('/');
  return Cut(slash == absl::string_view::npos ? site : site.substr(slash + 1));
}

class Values {
 public:
  explicit Values(IncidentFacts* facts) : facts_(facts) {}
  void Add(const std::string& kind, const std::string& value) {
    if (value.empty() || counts_[kind] >= kMostValuesOfKind) return;
    counts_[kind] += facts_->values.emplace(kind, Cut(value)).second ? 1 : 0;
  }

 private:
  IncidentFacts* const facts_;
  std::map<std::string, int> counts_;
};

void AddCulprits(const v1::Verdict& root, Values* values) {
  for (const v1::Culprit& culprit : root.culprits()) {
    values->Add("host", culprit.host());
    values->Add("gpu", culprit.gpu_uuid());
    if (culprit.has_uid() && culprit.uid() != UINT32_MAX)
      values->Add("user", absl::StrCat(culprit.uid()));
    values->Add("call_site",
                SiteWithoutFolder(culprit.at().empty() ? culprit.code() : culprit.at()));
  }
  for (const std::string& host : root.other_culprit_hosts()) values->Add("host", host);
}

// Earlier releases did not record the ranks: those that the verdict names are most of them.
double RanksOf(const v1::Incident& incident) {
  const v1::Verdict& root = incident.verdicts(0);
  return incident.ranks() > 0 ? incident.ranks() : root.waiting_total() + root.culprits_total();
}

}  // namespace

const std::vector<std::string>& FactKinds() {
  static const auto& kinds = *new std::vector<std::string>{
      "host", "gpu", "user", "framework", "call_site", "cause", "tenant", "job"};
  return kinds;
}

bool IsFactKind(const std::string& kind) {
  const auto& kinds = FactKinds();
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end() ||
         (absl::StartsWith(kind, kLabelKind) && kind.size() > sizeof(kLabelKind) - 1);
}

std::string FrameworkOf(const v1::Incident& incident) {
  for (const Framework& framework : kFrameworks) {
    for (const v1::ProcessStack& stack : incident.stacks()) {
      for (const v1::ThreadStack& thread : stack.threads()) {
        for (const v1::Frame& frame : thread.frames()) {
          if (frame.python() && absl::StrContains(frame.file(), framework.folder)) {
            return framework.name;
          }
        }
      }
    }
  }
  return "";
}

int64_t LostRankMs(const v1::Incident& incident, int64_t until_ns) {
  if (!incident.has_confirmed_at() || incident.verdicts().empty()) return 0;
  const int64_t since_ns =
      NsOf(incident.has_waits_since() ? incident.waits_since() : incident.opened_at());
  const double ms = static_cast<double>(std::max<int64_t>(until_ns - since_ns, 0)) / kMillisecond;
  return std::llround(std::min(ms * RanksOf(incident), 1e15));
}

IncidentFacts FactsOf(const v1::Incident& incident) {
  IncidentFacts facts;
  facts.tenant = Cut(ReadJobKey(incident).tenant);
  if (!incident.has_confirmed_at() || incident.verdicts().empty() ||
      incident.verdicts(0).cause().empty()) {
    facts.values.emplace("", "");
    return facts;
  }
  const v1::Verdict& root = incident.verdicts(0);
  facts.cause = Cut(root.cause());
  facts.is_certain = root.certainty() == "certain";
  facts.lost_rank_ms = LostRankMs(
      incident, NsOf(incident.has_closed_at() ? incident.closed_at() : incident.confirmed_at()));
  Values values(&facts);
  AddCulprits(root, &values);
  for (const v1::HostLabel& label : incident.host_labels()) {
    values.Add(kLabelKind + label.name(), label.value());
  }
  values.Add("framework", FrameworkOf(incident));
  values.Add("cause", facts.cause);
  values.Add("tenant", facts.tenant);
  values.Add("job", incident.job());
  return facts;
}

}  // namespace rollcall
