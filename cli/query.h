// SPDX-License-Identifier: Apache-2.0
// What the commands that ask a daemon share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rollcall/v1/query.grpc.pb.h"

namespace CLI {
class App;
}

namespace rollcall {

class DaemonQuery {
 public:
  explicit DaemonQuery(std::string address);

  // Asks, and waits at most five seconds. False: what is to be said of that was said; `command`
  // is named in it.
  using Call = std::function<grpc::Status(v1::Query::Stub*, grpc::ClientContext*)>;
  bool Ask(const char* command, const Call& call);
  // The same, saying nothing.
  grpc::Status Try(const Call& call);

 private:
  const std::string address_;
  const std::unique_ptr<v1::Query::Stub> stub_;
};

struct QueryFlags {
  std::string daemon = "127.0.0.1:9400";
  std::string format = "text";
};

// --daemon and --format, alike in all of them.
void AddQueryFlags(CLI::App* app, QueryFlags* flags);

void PrintJson(const google::protobuf::Message& message);

}  // namespace rollcall
