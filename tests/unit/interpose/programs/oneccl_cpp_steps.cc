// SPDX-License-Identifier: Apache-2.0
// A program that calls a stub of oneCCL's C++ interface as rank 1 of 3, for tests of the preloaded
// library. Its arguments are steps:
//
//   calls       makes collectives of several kinds, and waits for them
//   open        makes an allreduce for which it does not wait
//   dropped     drops the event of a broadcast
//   wait        waits for the newest event; "poll" tests it once, "tests" until it is done
//   messages    sends and receives; "unsent" does not wait
//   throws      a call, a wait and a creation throw
//   split, part make parts of the communicator; "pair" one for a device, in the place of all others
//   destroy     ends all communicators
//   end         ends the process where it would wait next
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/stub_oneccl_cpp.h"

namespace {

std::shared_ptr<ccl::kvs> store = std::make_shared<ccl::kvs>("the address");
std::vector<ccl::communicator> comms;
std::vector<ccl::event> events;

ccl::communicator& World() { return comms.front(); }

ccl::event AllReduce(size_t count = 24) {
  return ccl::allreduce(nullptr, nullptr, count, ccl::datatype::float32, ccl::reduction::max,
                        World(), {}, {});
}

void Calls() {
  AllReduce().wait();
  double numbers[8] = {};
  ccl::allreduce(numbers, numbers, 8, ccl::reduction::sum, World(), {}, {}).wait();
  short words[4] = {};
  ccl::broadcast(words, 4, 2, World(), {}, {}).wait();
  ccl::allgatherv(nullptr, 7, nullptr, {7, 8, 9}, ccl::datatype::uint16, World(), {}, {}).wait();
  ccl::barrier(World(), {}, {});
  ccl::allreduce(nullptr, nullptr, 5, ccl::datatype::int32, ccl::reduction::min, World(),
                 ccl::stream(), {}, {})
      .wait();
}

template <typename Call>
void MustThrow(Call call) {
  stub_throws = true;
  try {
    call();
    _exit(3);
  } catch (const std::runtime_error&) {
  }
  stub_throws = false;
}

void Throws() {
  MustThrow([] { AllReduce(); });
  ccl::event event = AllReduce(2);
  MustThrow([&] { event.wait(); });
  MustThrow([] { comms.push_back(ccl::create_communicator(3, 1, store, {})); });
}

void Messages() {
  ccl::event to = ccl::send(nullptr, 7, ccl::datatype::float32, 2, World(), {}, {});
  ccl::event from = ccl::recv(nullptr, 7, ccl::datatype::float32, 0, World(), {}, {});
  to.wait();
  from.wait();
}

void Take(const std::string& step) {
  if (step == "calls") Calls();
  if (step == "open") events.push_back(AllReduce());
  if (step == "wait") events.back().wait();
  if (step == "dropped") ccl::broadcast(static_cast<short*>(nullptr), 4, 2, World(), {}, {});
  if (step == "poll") events.back().test();
  while (step == "tests" && !events.back()) {
  }
  if (step == "messages") Messages();
  if (step == "unsent")
    events.push_back(ccl::send(nullptr, 7, ccl::datatype::float32, 2, World(), {}, {}));
  if (step == "throws") Throws();
  if (step == "split") comms.push_back(ccl::split_communicator(World(), 5, 0));
  if (step == "part") comms.push_back(World().split(6, 1, false));
  if (step == "pair") {
    const std::vector<std::pair<int, ccl::device>> devices = {{1, {}}};
    comms = ccl::detail::environment().create_communicators(3, devices, ccl::context(), store, {});
  }
  if (step == "destroy") comms.clear();
  if (step == "end") stub_calls = [] { _exit(0); };
}

}  // namespace

int main(int argc, char** argv) {
  comms.reserve(8);
  comms.push_back(ccl::create_communicator(3, 1, store, {}));
  for (int i = 1; i < argc; ++i) Take(argv[i]);
  _exit(0);
}
