// SPDX-License-Identifier: Apache-2.0
#include "cli/examples.h"

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

struct ExampleRow {
  const char* command;
  const char* line;
  const char* what;
};

constexpr ExampleRow kExampleRows[] = {
    {"diagnose", "rollcall diagnose", "judges your jobs on this host"},
    {"diagnose", "rollcall diagnose --slurm=4711", "judges a job on all its nodes"},
    {"diagnose", "rollcall diagnose --report-dir=reports train.py",
     "judges the job with this script, and keeps a report"},
    {"run", "rollcall run torchrun --nproc-per-node 8 train.py",
     "prints the verdict when the job hangs"},
    {"run", "rollcall run --hang-after=2m --on-hang=abort python train.py",
     "ends a job that has waited for two minutes, with exit code 75"},
    {"run", "rollcall run --daemon=head:7655 srun python train.py",
     "reports to the daemon on the host head"},
    {"demo", "rollcall demo", "needs python3 and no GPU"},
    {"analyze", "rollcall analyze dumps/", "judges all files of a job in a folder"},
    {"analyze", "rollcall analyze --format=html nccl_trace_rank_* > report.html",
     "writes the report of dumps of PyTorch's Flight Recorder"},
    {"status", "rollcall status", "lists the jobs, those that hang first"},
    {"status", "rollcall status --exit-code train", "exits with 3 if the job train hangs"},
    {"watch", "rollcall watch", "shows all jobs; q quits"},
    {"watch", "rollcall watch train", "shows the job train"},
    {"stacks", "rollcall stacks train", "merges the stacks of all ranks of the job train"},
    {"stacks", "rollcall stacks --rank=0-3 --each train", "prints four ranks one after the other"},
    {"stacks", "rollcall stacks 4121", "prints the stacks of a process of this host"},
    {"incidents", "rollcall incidents --since=7d", "lists the hangs of the last seven days"},
    {"incidents", "rollcall incidents --by=host --since=30d",
     "counts the hangs of a month for each host at fault"},
    {"acknowledge", "rollcall acknowledge train-1", "shows others that you take care of it"},
    {"acknowledge", "rollcall acknowledge --take-back train-1", "takes that back"},
    {"note", "rollcall note train-1 \"node-17 is drained\"", "adds a note to the incident train-1"},
    {"silence", "rollcall silence --host=node-17 --for=8h --comment=\"new GPU\"",
     "holds back alerts with a culprit on node-17"},
    {"silence", "rollcall silence", "lists the silences"},
    {"report", "rollcall report train-1", "prints the report of the incident train-1"},
    {"report", "rollcall report --report-dir=reports --anonymize train-1",
     "writes it to a folder, without names"},
    {"report", "rollcall report --trace=train.pftrace train-1",
     "writes the recorded calls for Perfetto"},
    {"compare", "rollcall compare train-1 train-2", "compares two incidents of a daemon"},
    {"compare", "rollcall compare reports/a reports/b", "compares two reports on disk"},
    {"doctor", "rollcall doctor", "checks this host"},
    {"doctor", "rollcall doctor python train.py", "also checks the program of a job"},
    {"explain", "rollcall explain job.log", "explains the known lines of a log"},
    {"explain", "kubectl logs POD | rollcall explain", "explains a log on standard input"},
    {"pki", "rollcall pki init pki", "makes an authority in the folder pki"},
    {"pki", "rollcall pki issue pki --role=daemon --host=head", "makes a daemon's certificate"},
    {"pki", "rollcall pki renew pki --all", "renews the certificates that expire soon"},
    {"token", "rollcall token new --file=tokens --name=grafana --role=viewer",
     "makes a token and prints it once"},
    {"token", "rollcall token revoke --file=tokens --name=grafana", "revokes it"},
    {"install-library", "rollcall install-library /shared", "copies the library into /shared"},
    {"webhook", "rollcall webhook --tls-cert=tls.crt --tls-key=tls.key --image=rollcall:1.0",
     "answers the API server of a cluster"},
    {"completion", "source <(rollcall completion bash)", "completes words in this shell"},
    {"man", "rollcall man run | man -l -", "shows the man page of rollcall run"},
};

}  // namespace

std::vector<Example> ExamplesOf(const std::string& command) {
  std::vector<Example> examples;
  for (const ExampleRow& row : kExampleRows) {
    if (command == row.command) examples.push_back({row.line, row.what});
  }
  return examples;
}

std::string ExamplesText(const std::vector<Example>& examples) {
  std::string text = "Examples:";
  for (const Example& example : examples) {
    absl::StrAppend(&text, "\n  ", example.line, "\n      ", example.what);
  }
  return text;
}

}  // namespace rollcall
