// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/postgres_database.h"

#include <libpq-fe.h>
#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"

namespace rollcall {
namespace {

using Clock = std::chrono::steady_clock;

// Types of pg_type, which never change.
constexpr Oid kBytea = 17, kBigint = 20, kText = 25;

struct FreeResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
struct FreeConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Result = std::unique_ptr<PGresult, FreeResult>;
using Connection = std::unique_ptr<PGconn, FreeConnection>;
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

// The server's and libpq's messages end with a line's end, and may have several lines.
std::string InOneLine(absl::string_view message) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(message), {{"\n", "; "}, {"\t", " "}});
}

// nullptr if libpq does not take the text.
Options Parse(const std::string& url) { return Options(PQconninfoParse(url.c_str(), nullptr)); }

std::string Find(const Options& options, const char* name) {
  for (const PQconninfoOption* option = options.get();
       option != nullptr && option->keyword != nullptr; ++option) {
    if (std::strcmp(option->keyword, name) == 0 && option->val != nullptr) return option->val;
  }
  return "";
}

// "$1" for the first "?" outside of texts, and so on.
std::string WithNumbers(const std::string& text) {
  std::string numbered;
  int number = 0;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '\'') is_quoted = !is_quoted;
    if (c == '?' && !is_quoted) {
      absl::StrAppend(&numbered, "$", ++number);
    } else {
      numbered += c;
    }
  }
  return numbered;
}

// PostgreSQL takes no text that is not UTF-8, and none with a byte 0. Such bytes become '?'.
std::string ForPostgres(const std::string& text) {
  std::string valid;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = Utf8At(text, i);
    if (c.length == 0 || c.code == 0) {
      valid += '?';
      ++i;
      continue;
    }
    valid.append(text, i, c.length);
    i += c.length;
  }
  return valid;
}

// Returns the status for the class of the error. The server refuses some values for good; all else
// may pass.
absl::Status StatusOf(const char* state, std::string message) {
  const absl::string_view code = state == nullptr ? "" : state;
  for (const char* refused : {"21", "22", "23", "54"}) {
    if (absl::StartsWith(code, refused)) {
      return absl::InvalidArgumentError(absl::StrCat(message, " (", code, ")"));
    }
  }
  return absl::UnavailableError(std::move(message));
}

class LibpqDatabase : public PostgresDatabase {
 public:
  LibpqDatabase(Connection connection, const PostgresTimes& times)
      : connection_(std::move(connection)), times_(times) {}

  std::unique_ptr<SqlStatement> Prepare(const std::string& text) override;
  bool is_connected() const override {
    return !is_lost_ && PQstatus(connection_.get()) == CONNECTION_OK;
  }
  int server_version() const override { return PQserverVersion(connection_.get()) / 10000; }

  PGconn* connection() const { return connection_.get(); }

  // Waits until the connection can be read, or also written.
  bool Await(short events, Clock::time_point deadline) {
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return false;
      pollfd wanted = {PQsocket(connection_.get()), events, 0};
      const int ready = poll(&wanted, 1, static_cast<int>(left.count()));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  // The answer to what was sent. nullptr if the connection is lost.
  Result Receive() {
    const auto deadline = Clock::now() + times_.answer;
    while (const int left = PQflush(connection_.get())) {
      if (left < 0 || !Await(POLLIN | POLLOUT, deadline) ||
          PQconsumeInput(connection_.get()) == 0) {
        return Lose();
      }
    }
    Result last;
    while (true) {
      while (PQisBusy(connection_.get()) != 0) {
        if (!Await(POLLIN, deadline) || PQconsumeInput(connection_.get()) == 0) return Lose();
      }
      Result next(PQgetResult(connection_.get()));
      if (next == nullptr) return last;
      last = std::move(next);
    }
  }

  std::string problem() const {
    const std::string said = InOneLine(PQerrorMessage(connection_.get()));
    return is_lost_ && said.empty() ? "the database does not answer" : said;
  }

 private:
  Result Lose() {
    is_lost_ = true;
    return nullptr;
  }

  const Connection connection_;
  const PostgresTimes times_;
  bool is_lost_ = false;  // in the middle of an answer
};

class PostgresStatement : public SqlStatement {
 public:
  PostgresStatement(LibpqDatabase* db, const std::string& text)
      : db_(db), text_(WithNumbers(text)) {}

  void Bind(int64_t value) override { Add(kBigint, absl::StrCat(value)); }
  void Bind(const std::string& text) override { Add(kText, ForPostgres(text)); }
  void Bind(const SqlBlob& blob) override { Add(kBytea, blob.bytes); }

  bool Next() override {
    if (!has_run_) Run();
    return status_.ok() && result_ != nullptr && ++row_ < PQntuples(result_.get());
  }
  absl::Status status() const override { return status_; }

  int64_t Integer(int column) const override {
    return std::strtoll(PQgetvalue(result_.get(), row_, column), nullptr, 10);
  }
  std::string Bytes(int column) const override {
    const char* const value = PQgetvalue(result_.get(), row_, column);
    if (PQftype(result_.get(), column) != kBytea) {
      return std::string(value, static_cast<size_t>(PQgetlength(result_.get(), row_, column)));
    }
    size_t size = 0;
    unsigned char* const bytes =
        PQunescapeBytea(reinterpret_cast<const unsigned char*>(value), &size);
    const std::string read(reinterpret_cast<const char*>(bytes), size);
    PQfreemem(bytes);
    return read;
  }
  int64_t changed() const override {
    return result_ == nullptr ? 0 : std::strtoll(PQcmdTuples(result_.get()), nullptr, 10);
  }

 private:
  void Add(Oid type, std::string value) {
    types_.push_back(type);
    values_.push_back(std::move(value));
  }

  void Run() {
    has_run_ = true;
    std::vector<const char*> values;
    std::vector<int> lengths, formats;
    for (size_t i = 0; i < values_.size(); ++i) {
      values.push_back(values_[i].c_str());
      lengths.push_back(static_cast<int>(values_[i].size()));
      formats.push_back(types_[i] == kBytea ? 1 : 0);
    }
    if (!db_->is_connected() ||
        PQsendQueryParams(db_->connection(), text_.c_str(), static_cast<int>(values.size()),
                          types_.data(), values.data(), lengths.data(), formats.data(), 0) == 0) {
      status_ = absl::UnavailableError(db_->problem());
      return;
    }
    result_ = db_->Receive();
    const ExecStatusType got = PQresultStatus(result_.get());
    if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK) return;
    status_ = result_ == nullptr ? absl::UnavailableError(db_->problem())
                                 : StatusOf(PQresultErrorField(result_.get(), PG_DIAG_SQLSTATE),
                                            InOneLine(PQresultErrorMessage(result_.get())));
    result_.reset();
  }

  LibpqDatabase* const db_;
  const std::string text_;
  std::vector<Oid> types_;
  std::vector<std::string> values_;
  bool has_run_ = false;
  int row_ = -1;
  Result result_;
  absl::Status status_;
};

std::unique_ptr<SqlStatement> LibpqDatabase::Prepare(const std::string& text) {
  return std::make_unique<PostgresStatement>(this, text);
}

// The URL's own parameters count more than these.
struct Defaults {
  std::vector<std::string> names, values;
};

Defaults DefaultsFor(const PostgresTimes& times) {
  Defaults defaults;
  const auto add = [&defaults](const char* name, const std::string& value) {
    defaults.names.push_back(name);
    defaults.values.push_back(value);
  };
  add("application_name", "rollcalld");
  add("connect_timeout", absl::StrCat(times.connect.count()));
  // A server that is gone without a word: noticed within about 15 s.
  add("tcp_user_timeout", absl::StrCat(times.answer.count() * 1000));
  add("keepalives_idle", "5");
  add("keepalives_interval", "3");
  add("keepalives_count", "3");
  return defaults;
}

Connection Open(const std::string& url, const PostgresTimes& times) {
  const Defaults defaults = DefaultsFor(times);
  std::vector<const char*> names, values;
  for (size_t i = 0; i < defaults.names.size(); ++i) {
    names.push_back(defaults.names[i].c_str());
    values.push_back(defaults.values[i].c_str());
  }
  names.push_back("dbname");  // expanded: a whole URL
  values.push_back(url.c_str());
  names.push_back("client_encoding");
  values.push_back("UTF8");
  names.push_back(nullptr);
  values.push_back(nullptr);
  return Connection(PQconnectdbParams(names.data(), values.data(), 1));
}

// Returns what an operator types next. libpq has no codes for failed connections, only messages of
// the server, which its settings may translate.
std::string AdviceFor(PGconn* connection, const std::string& shown) {
  const char* const said = PQerrorMessage(connection);
  if (PQconnectionNeedsPassword(connection) != 0) {
    return "a password?  in a file of mode 0600:  PGPASSFILE=FILE   "
           "(HOST:PORT:DATABASE:USER:PASSWORD)";
  }
  if (absl::StrContains(said, "authentication failed")) {
    return "is the password right?  PGPASSFILE=FILE, PGPASSWORD, or  --store=@FILE  with the URL";
  }
  if (absl::StrContains(said, "does not exist")) {
    return absl::StrCat(
        "make user and database:  createuser rollcall && createdb --owner=rollcall "
        "--encoding=UTF8 rollcall");
  }
  return absl::StrCat("is it up?  pg_isready --dbname=", shown);
}

bool IsRefusedForNow(const char* said) {
  for (const char* passing :
       {"starting up", "shutting down", "recovery", "too many", "remaining connection"}) {
    if (absl::StrContains(said, passing)) return true;
  }
  return false;
}

// The server answered, so waiting does not help.
bool IsRefused(PGconn* connection) {
  const char* const said = PQerrorMessage(connection);
  return absl::StrContains(said, "FATAL:") && !IsRefusedForNow(said);
}

// Short statements take longer to compile than to run, and long ones wait for the disk.
constexpr char kNoCompiling[] = "SET jit = off";

absl::Status SetTimes(SqlDatabase* db, const PostgresTimes& times) {
  const int64_t answer_ms = (times.answer.count() - 1) * 1000;
  for (const std::string& text :
       {absl::StrCat("SET statement_timeout = ", answer_ms),
        absl::StrCat("SET lock_timeout = ", times.lock.count() * 1000),
        absl::StrCat("SET idle_in_transaction_session_timeout = ", times.pause.count() * 1000),
        std::string("SET client_min_messages = warning"), std::string(kNoCompiling)}) {
    const absl::Status status = Sql(db, text).Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void DropNotice(void*, const PGresult*) {}

}  // namespace

bool IsPostgresUrl(absl::string_view text) {
  return absl::StartsWith(text, "postgresql://") || absl::StartsWith(text, "postgres://");
}

std::string PasswordOfPostgresUrl(const std::string& url) { return Find(Parse(url), "password"); }

absl::StatusOr<std::string> PostgresUrlInPublic(const std::string& url) {
  const Options options = Parse(url);
  if (!IsPostgresUrl(url) || options == nullptr) {
    return absl::InvalidArgumentError(
        "not a URL of PostgreSQL\n  for example:  postgresql://USER@HOST:5432/DATABASE");
  }
  const std::string user = Find(options, "user"), port = Find(options, "port");
  return absl::StrCat("postgresql://", user, user.empty() ? "" : "@", Find(options, "host"),
                      port.empty() ? "" : ":", port, "/", Find(options, "dbname"));
}

absl::StatusOr<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Connect(
    const std::string& url, const PostgresTimes& times) {
  const auto shown = PostgresUrlInPublic(url);
  if (!shown.ok()) return shown.status();
  Connection connection = Open(url, times);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    const std::string text = absl::StrCat("cannot connect to ", *shown, ": ",
                                          InOneLine(PQerrorMessage(connection.get())), "\n  ",
                                          AdviceFor(connection.get(), *shown));
    if (IsRefused(connection.get())) return absl::FailedPreconditionError(text);
    return absl::UnavailableError(text);
  }
  PQsetNoticeReceiver(connection.get(), DropNotice, nullptr);
  PQsetnonblocking(connection.get(), 1);
  auto db = std::make_unique<LibpqDatabase>(std::move(connection), times);
  const absl::Status status = SetTimes(db.get(), times);
  if (!status.ok()) return status;
  return db;
}

}  // namespace rollcall
