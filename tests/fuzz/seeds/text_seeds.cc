// SPDX-License-Identifier: Apache-2.0
#include "seeds.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr size_t kLongest = 8000;  // of a header field and a path
constexpr char kDigest[] = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

void AddTokens(Seeds* seeds) {
  const std::string digest = kDigest;
  const std::string viewer =
      "  - name: ci\n    role: viewer\n    tenants: [team-a, \"*\"]\n"
      "    expires: 2027-11-23T00:00:00Z\n    sha256: \"" +
      digest + "\"\n";
  const std::string agent =
      "  - name: nodes\n    role: agent\n    hosts: [node-17, \"*.nodes.example\"]\n"
      "    expires: never\n    sha256: \"1111" +
      digest.substr(4) + "\"\n";
  (*seeds)["tokens"] = {
      "tokens:\n" + viewer, "# two\ntokens:\n" + viewer + agent, "", "tokens: []\n",
      "tokens:\n- {name: a, role: operator, expires: never, sha256: " + digest + "}\n"};
}

void AddWebConfig(Seeds* seeds) {
  (*seeds)["web_config"] = {
      "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
      "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
      "  client_allowed_sans: [prometheus]\n  min_version: TLS13\n",
      "basic_auth_users:\n  prometheus: "
      "$2b$10$abcdefghijklmnopqrstuuKIB9V4N0F6lE6kHYgkPZ0gKqHj1nWdK\n",
      "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"};
}

void AddNames(Seeds* seeds) {
  (*seeds)["identity"] = {
      "uspiffe://cluster/rollcall/agent/host/node-17/tenant/team-a\nd*.nodes.example\n",
      "uspiffe://cluster/rollcall/viewer/all-tenants\n",
      "tcluster\ntother.example\nuspiffe://cluster/rollcall/operator\n",
      "gviewer=dns:*.example,tenant=team-a\ndnode-1.example\n",
      "goperator=spiffe://k8s/ns/*/sa/admin\nuspiffe://k8s/ns/prod/sa/admin\n",
      "gagent=sub:system:serviceaccount:*:rollcall,host=*\n"
      "ssystem:serviceaccount:prod:rollcall\nd17.example\n"};
  (*seeds)["addresses"] = {"ipv4:127.0.0.1:41922",
                           "ipv6:%5B::1%5D:41922",
                           "ipv6:[::ffff:10.0.0.1]:80",
                           "unix:/run/rollcall.sock",
                           "dns:///node-1.example:7655",
                           "[fd00::1]:7655",
                           "spiffe://cluster/rollcall/agent",
                           "*.nodes.example",
                           "rollcall_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
  (*seeds)["redact"] = {
      "python train.py --hf-token hf_abcdefghijklmnopqrstuvwxyz012345 --lr 1e-4",
      "https://user:secret@host/path?token=abcdefghijklmnop",
      "MY_API_KEY='s3cret' Authorization: Bearer eyJhbGciOiJ9.eyJzdWIiOiIxIn0.sig",
      "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----"};
}

const char* const kRequests[] = {
    "GET / HTTP/1.1\r\nHost: localhost:7656\r\n\r\n",
    "GET /?token=viewer HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET /api/v1/job?job=train&tenant=team&attempt=2 HTTP/1.1\r\nHost: [::1]:1\r\n"
    "Authorization: Bearer viewer\r\n\r\n",
    "GET /api/v1/calls?job=a&ranks=0,3-5&limit=9 HTTP/1.1\r\nHost: localhost\r\n"
    "Authorization: Bearer viewer\r\nAccept-Encoding: gzip\r\n\r\n",
    "GET /api/v1/incidents?from=2026-11-20T00:00:00Z&cause=x HTTP/1.1\r\nHost: localhost\r\n"
    "Authorization: Bearer operator\r\nIf-None-Match: \"1\"\r\n\r\n",
    "POST /api/v1/stacks?job=a&ranks=0 HTTP/1.1\r\nHost: localhost\r\nX-Rollcall: 1\r\n"
    "Authorization: Bearer operator\r\nContent-Length: 0\r\n\r\n",
    "POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Type: "
    "application/json\r\nContent-Length: 18\r\n\r\n{\"token\":\"viewer\"}",
    "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    "Content-Length: 12\r\n\r\ntoken=viewer",
    "POST /logout HTTP/1.1\r\nHost: localhost\r\nX-Rollcall: 1\r\n"
    "Cookie: a=b; rollcall_session=c\r\nContent-Length: 0\r\n\r\n",
    "GET /report?id=a-1&download HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
    "viewer\r\n\r\n",
    "GET /incidents/a%20b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\n\r\n",
    "GET /api/v1/events?job=a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n"
    "Authorization: Bearer viewer\r\n\r\n",
    "HEAD /healthz HTTP/1.0\r\n\r\n"};

void AddRequests(Seeds* seeds) {
  // The HTTP library matches both by regular expressions, which go as deep as a text is long.
  std::string ranges = "GET /login HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-0";
  while (ranges.size() < kLongest) ranges += ",0-0";
  const std::string long_path =
      "GET /incidents/" + std::string(kLongest, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  (*seeds)["http"] = {'\0' + ranges + "\r\n\r\n", '\7' + long_path};
  (*seeds)["http_head"] = {"https://rollcall.example:7656/page", "[::1]:7656\r\n\r\n"};
  for (const std::string request : kRequests) {
    (*seeds)["http_head"].push_back(request);
    for (const char shows : {'\0', '\1', '\2', '\7'}) (*seeds)["http"].push_back(shows + request);
  }
}

void AddProc(Seeds* seeds) {
  (*seeds)["proc"] = {
      std::string(1, '\0') +
          "55e0c0a00000-55e0c0a21000 r-xp 00001000 fd:01 123 /usr/bin/python3.11\n"
          "7ffd1c000000-7ffd1c021000 rw-p 00000000 00:00 0                  [stack]\n"
          "7ffd1c100000-7ffd1c121000 r--s 00000000 00:1a 77 /dev/shm/x (deleted)\n",
      "\1"
      "4121 (python) (3)) S 1 4121 4121 0 -1 4194304 1 2 3 4 50 60 0 0 20 0 8 0 88012345 "
      "1000000 2500 18446744073709551615 94000 94100 140000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 "
      "94200 94300 94400 140001 140002 140003 140004 0\n",
      std::string("\2RANK=3\0WORLD_SIZE=8\0LOCAL_RANK=1\0ROLLCALL_JOB=train\0", 53),
      std::string("\2SLURM_PROCID=7\0SLURM_NTASKS=16\0", 32)};
  (*seeds)["perf_map"] = {std::string("\x10\x20\0\0\0\0\0\0", 8) +
                              "2000 20 py::train:/x/train.py\n3000 10 LazyCompile:~f\n",
                          std::string(8, '\0') + "7f0000000000 ffff with blanks in it\n"};
}

void AddCudaGdb(Seeds* seeds) {
  (*seeds)["cuda_gdb"] = {
      "  Kernel Parent Dev Grid Status   SMs Mask GridDim  BlockDim Invocation\n"
      "*      0      -   0   53 Active 0x000003 (2,1,1) (96,1,1) spin(flag=0x7f00)\n"
      "       1      0   0   -7 Pending 0x04 (1,1,1) (32,1,1) (2,1,1) void f<int>(int*)()\n"
      "  BlockIdx ThreadIdx To BlockIdx To ThreadIdx Count  PC  Filename  Line\n"
      "Kernel 0\n"
      "*  (0,0,0)   (0,0,0)     (0,0,0)     (95,0,0)    96 0x00007f2e6fbff300 /x/spin.cu    31\n"
      "   (1,0,0  (0,0,0)  (1,0,0)  (31,0,0)  32 0x00007f2e6fbff310    0\n",
      "No CUDA kernels.\n"};
}

void AddRas(Seeds* seeds) {
  (*seeds)["ras"] = {
      "{\"nccl_version\": \"2.29.2\", \"communicators\": [{\"hash\": \"0xa91f\", \"size\": 2, "
      "\"ranks\": [{\"rank\": 0, \"host\": \"10.0.0.1\", \"pid\": 100, \"cuda_dev\": 0, "
      "\"collective_counts\": {\"AllReduce\": 5, \"Broadcast\": 0}}, {\"rank\": 1, \"host\": "
      "\"10.0.0.1\", \"pid\": 3, \"cuda_dev\": 1, \"collective_counts\": {\"AllReduce\": 4, "
      "\"Broadcast\": 1}}], \"missing_ranks\": [{\"rank\": 2, \"pid\": 9, \"status\": "
      "{\"unresponsive\": true, \"considered_dead\": true}}]}]}",
      "NCCL version 2.26.2 compiled with CUDA 12.6\n\nJob summary\n\nCommunicators... (0.00s)\n\n"
      "INCOMPLETE\n  Process 60004 on node 10.4.109.13 managing GPU 0\n\n"
      "#0-0 (fa93daea854b060b) MISMATCH\n"
      "  Communicator ranks have different AllGather operation counts\n"
      "  30 ranks have launched up to operation 641\n"
      "  2 ranks have launched up to operation 640\n"
      "  Rank 12 -- GPU 4 managed by process 100 on node 10.137.190.124\n"
      "  Rank 13 -- GPU 5 managed by process 3 on node 10.137.190.124\n"};
}

}  // namespace

void AddTextSeeds(Seeds* seeds) {
  AddTokens(seeds);
  AddWebConfig(seeds);
  AddNames(seeds);
  AddRequests(seeds);
  AddProc(seeds);
  AddCudaGdb(seeds);
  AddRas(seeds);
}

Seeds AllSeeds() {
  Seeds seeds;
  AddTextSeeds(&seeds);
  AddSecuritySeeds(&seeds);
  AddAgentSeeds(&seeds);
  AddDaemonSeeds(&seeds);
  AddDumpSeeds(&seeds);
  return seeds;
}

}  // namespace fuzz
}  // namespace rollcall
