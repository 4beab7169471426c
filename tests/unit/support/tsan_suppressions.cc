// SPDX-License-Identifier: Apache-2.0
// What ThreadSanitizer does not see in libraries of the distribution, which are built without it:
// they order what they do with their own memory by means of their own.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libcpp-httplib.so\n"
         "called_from_lib:libspdlog.so\n"
         // The library locks the sink. The formatter is inline code of the program.
         "race:spdlog::details::full_formatter::format\n"
         // httplib::Client::stop() locks in its own code, and jumps into the unlock at its end.
         "mutex:rollcall::HttpWatchdog::Watch\n"
         // spdlog::set_level() does so, too.
         "mutex:limited_log_test.cc\n";
}
