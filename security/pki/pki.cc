// SPDX-License-Identifier: Apache-2.0
#include "security/pki/pki.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/atomic_file.h"
#include "base/unique_fd.h"
#include "base/watched_file.h"
#include "security/certificates/certificate.h"
#include "security/certificates/certificate_authority.h"
#include "security/certificates/revocation.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDayS = 86'400;
constexpr int kMaxDays = 36'500;
// The clocks of two hosts differ a little.
constexpr int64_t kBackdateS = 300;
constexpr mode_t kPublic = 0644;
constexpr mode_t kSecret = 0600;

absl::Status CheckDays(int days) {
  if (days >= 1 && days <= kMaxDays) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--days=", days, ": 1 to ", kMaxDays));
}

// Any user who may write in the folder can put another authority there, and it would sign from then
// on. What root has made, for a group to write in, root has meant so.
absl::Status CheckOwner(const std::string& path, const struct stat& folder) {
  if (folder.st_uid != geteuid() && folder.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, " belongs to user ", folder.st_uid,
        ", who could put another authority there; run this as that user, or choose another folder"));
  }
  if ((folder.st_mode & S_IWOTH) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "every user may write in ", path, ", and put another authority there: chmod o-w ", path));
}

// The folder, while no other process writes in it.
class Folder {
 public:
  static absl::StatusOr<Folder> Open(const std::string& path) {
    const UniqueFd folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat about;
    if (folder.valid() && fstat(folder.get(), &about) == 0) {
      const absl::Status ours = CheckOwner(path, about);
      if (!ours.ok()) return ours;
    }
    UniqueFd fd;
    if (folder.valid()) {
      fd = UniqueFd(
          openat(folder.get(), ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kSecret));
    }
    if (!fd.valid()) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot use the folder ", path,
                                                     " (make it: rollcall pki init ", path, ")"));
    }
    if (flock(fd.get(), LOCK_EX) != 0) return absl::ErrnoToStatus(errno, "cannot lock " + path);
    return Folder(path, std::move(fd));
  }

  std::string Path(const std::string& file) const { return absl::StrCat(path_, "/", file); }
  bool Has(const std::string& file) const { return fs::exists(Path(file)); }

  absl::StatusOr<KeyAndCertificate> Authority() const {
    const absl::StatusOr<std::string> certificate = ReadWatchedFile(Path("ca.crt"));
    const absl::StatusOr<std::string> key = ReadWatchedFile(Path("ca.key"));
    if (certificate.ok() && key.ok()) return KeyAndCertificate{*certificate, *key};
    return absl::FailedPreconditionError(
        absl::StrCat(certificate.ok() ? key.status().message() : certificate.status().message(),
                     "; the folder needs an authority: rollcall pki init ", path_));
  }

  // The key first: a crash in between leaves a pair that does not fit, which no program takes.
  absl::Status Store(const std::string& name, const KeyAndCertificate& pair,
                     const std::string& serial) const {
    absl::Status status = WriteAtomically(Path(absl::StrCat("issued/", serial, ".crt")),
                                          pair.certificate_pem, kPublic);
    if (status.ok()) status = WriteAtomically(Path(name + ".key"), pair.key_pem, kSecret);
    if (status.ok()) status = WriteAtomically(Path(name + ".crt"), pair.certificate_pem, kPublic);
    return status;
  }

  // What cannot be read is an error: an empty list would give revoked certificates back.
  absl::StatusOr<RevocationList> Revoked() const {
    const absl::StatusOr<std::string> list = ReadWatchedFile(Path("ca.crl"));
    const absl::StatusOr<std::string> ca = ReadWatchedFile(Path("ca.crt"));
    absl::StatusOr<RevocationList> revoked = !list.ok() ? list.status()
                                             : !ca.ok() ? ca.status()
                                                        : RevocationList::Parse(*list, *ca);
    if (revoked.ok()) return revoked;
    return absl::FailedPreconditionError(absl::StrCat(
        Path("ca.crl"), ": ", revoked.status().message(),
        "; without it the revoked certificates are unknown: put the last good copy there"));
  }

 private:
  Folder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  UniqueFd lock_;
};

std::string DomainOf(const CertificateFacts& authority) {
  if (authority.uris.empty()) return "rollcall";
  absl::string_view domain = authority.uris.front();
  absl::ConsumePrefix(&domain, "spiffe://");
  return std::string(domain);
}

PkiEntry EntryOf(const std::string& name, const CertificateFacts& facts, bool is_revoked,
                 int64_t now_s) {
  PkiEntry entry;
  entry.name = name;
  entry.uri = facts.uris.empty() ? "" : facts.uris.front();
  entry.role = RoleInUri(entry.uri);
  entry.hosts = facts.dns_names;
  entry.hosts.insert(entry.hosts.end(), facts.ip_addresses.begin(), facts.ip_addresses.end());
  entry.expires_s = facts.not_after_s;
  entry.state = is_revoked                  ? PkiState::kRevoked
                : now_s > facts.not_after_s ? PkiState::kExpired
                                            : PkiState::kValid;
  return entry;
}

absl::StatusOr<PkiEntry> ReadEntry(const Folder& folder, const RevocationList& revoked,
                                   const std::string& name, int64_t now_s) {
  const absl::StatusOr<std::string> pem = ReadWatchedFile(folder.Path(name + ".crt"));
  if (!pem.ok()) return pem.status();
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(*pem);
  if (!facts.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.Path(name + ".crt"), ": ", facts.status().message()));
  }
  return EntryOf(name, *facts, revoked.IsRevoked(*pem), now_s);
}

absl::StatusOr<PkiEntry> ReadEntry(const Folder& folder, const std::string& name, int64_t now_s) {
  const absl::StatusOr<RevocationList> revoked = folder.Revoked();
  return revoked.ok() ? ReadEntry(folder, *revoked, name, now_s) : revoked.status();
}

// Issues, and stores under the common name.
absl::StatusOr<PkiEntry> Issue(const Folder& folder, const KeyAndCertificate& authority,
                               const CertificateRequest& request, int64_t seconds, int64_t now_s) {
  const absl::StatusOr<CertificateFacts> ca = ParseCertificate(authority.certificate_pem);
  if (!ca.ok()) return ca.status();
  const int64_t until_s = std::min(now_s + seconds, ca->not_after_s);
  if (until_s <= now_s) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the authority ", folder.Path("ca.crt"), " expired on ", DateOf(ca->not_after_s),
        "; make another in a new folder with `rollcall pki "
        "init`, and give daemons and agents both ca.crt in one file meanwhile"));
  }
  const absl::StatusOr<KeyAndCertificate> pair =
      IssueCertificate(authority, request, {now_s - kBackdateS, until_s});
  if (!pair.ok()) return pair.status();
  const CertificateFacts facts = ParseCertificate(pair->certificate_pem).value();
  if (absl::Status status = folder.Store(request.common_name, *pair, facts.serial); !status.ok()) {
    return status;
  }
  return EntryOf(request.common_name, facts, false, now_s);
}

absl::Status WriteRevocations(const Folder& folder, const KeyAndCertificate& authority,
                              const std::vector<RevokedSerial>& added, int64_t now_s) {
  RevocationFacts facts;
  if (folder.Has("ca.crl")) {
    const absl::StatusOr<std::string> before = ReadWatchedFile(folder.Path("ca.crl"));
    if (!before.ok()) return before.status();
    absl::StatusOr<RevocationFacts> parsed = ParseRevocationList(*before);
    if (!parsed.ok()) return parsed.status();
    facts = *std::move(parsed);
  }
  facts.revoked.insert(facts.revoked.end(), added.begin(), added.end());
  // The list needs no renewal: it ends with the authority.
  const int64_t until_s = ParseCertificate(authority.certificate_pem).value().not_after_s;
  const absl::StatusOr<std::string> list =
      MakeRevocationList(authority, facts.revoked, facts.number + 1, {now_s - kBackdateS, until_s});
  return list.ok() ? WriteAtomically(folder.Path("ca.crl"), *list, kPublic) : list.status();
}

// All certificates of this name that are valid and not revoked.
std::vector<RevokedSerial> ToRevoke(const Folder& folder, const RevocationList& revoked,
                                    const std::string& name, int64_t now_s) {
  std::vector<RevokedSerial> serials;
  std::error_code error;  // a folder that cannot be read has no files
  for (const auto& file : fs::directory_iterator(folder.Path("issued"), error)) {
    const absl::StatusOr<std::string> pem = ReadWatchedFile(file.path().string());
    if (!pem.ok() || revoked.IsRevoked(*pem)) continue;
    const absl::StatusOr<CertificateFacts> facts = ParseCertificate(*pem);
    if (facts.ok() && facts->subject == "CN=" + name && now_s <= facts->not_after_s) {
      serials.push_back({facts->serial, now_s});
    }
  }
  return serials;
}

std::string RandomWord() {
  unsigned char bytes[4] = {};
  RAND_bytes(bytes, sizeof(bytes));
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(bytes), sizeof(bytes)));
}

absl::Status NoSuchName(const std::string& path, const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no certificate of ", name, " in ", path,
                                          "; list them: rollcall pki list ", path));
}

}  // namespace

absl::StatusOr<int64_t> InitPki(const std::string& path, const std::string& domain, int days,
                                int64_t now_s) {
  absl::Status status = CheckPkiDomain(domain);
  if (status.ok()) status = CheckDays(days);
  if (!status.ok()) return status;
  std::error_code ignored;  // the next call fails too
  fs::create_directories(fs::path(path).parent_path(), ignored);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, "cannot make the folder " + path);
  }
  const absl::StatusOr<Folder> folder = Folder::Open(path);
  if (!folder.ok()) return folder.status();
  if (folder->Has("ca.crt")) {
    return absl::AlreadyExistsError(absl::StrCat(
        path,
        " has an authority already, and all certificates depend on it; choose another folder"));
  }
  // Left of an interrupted `pki init`, or put back by somebody who has not put back ca.crt yet.
  if (folder->Has("ca.key")) {
    return absl::AlreadyExistsError(
        absl::StrCat(folder->Path("ca.key"),
                     " has no certificate beside it: put ca.crt back, or "
                     "remove the key if it has signed nothing"));
  }
  const int64_t until_s = now_s + days * kDayS;
  const absl::StatusOr<KeyAndCertificate> authority = MakeAuthority(
      "Rollcall authority " + RandomWord(), {now_s - kBackdateS, until_s}, "spiffe://" + domain);
  if (!authority.ok()) return authority.status();
  fs::create_directory(folder->Path("issued"), ignored);
  fs::remove(folder->Path("ca.crl"), ignored);  // of an interrupted try, by another key
  status = WriteRevocations(*folder, *authority, {}, now_s);
  if (status.ok()) status = WriteAtomically(folder->Path("ca.key"), authority->key_pem, kSecret);
  if (!status.ok()) return status;
  // The certificate last: with it the folder counts as made.
  status = WriteAtomically(folder->Path("ca.crt"), authority->certificate_pem, kPublic);
  if (status.ok()) return until_s;
  fs::remove(folder->Path("ca.key"), ignored);  // it has signed nothing
  return status;
}

absl::StatusOr<PkiEntry> IssueInPki(const std::string& path, const PkiRequest& request,
                                    int64_t now_s) {
  if (absl::Status status = CheckDays(request.days); !status.ok()) return status;
  const absl::StatusOr<Folder> folder = Folder::Open(path);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<KeyAndCertificate> authority = folder->Authority();
  if (!authority.ok()) return authority.status();
  const absl::StatusOr<CertificateFacts> ca = ParseCertificate(authority->certificate_pem);
  if (!ca.ok()) return ca.status();
  const absl::StatusOr<PkiNames> names = NamesFor(request, DomainOf(*ca));
  if (!names.ok()) return names.status();
  if (folder->Has(names->name + ".crt")) {
    const absl::StatusOr<PkiEntry> before = ReadEntry(*folder, names->name, now_s);
    if (!before.ok()) return before.status();
    if (before->state == PkiState::kValid) {
      return absl::AlreadyExistsError(
          absl::StrCat(names->name, " has a valid certificate; renew it: rollcall pki renew ", path,
                       " ", names->name, "; end it: rollcall pki revoke ", path, " ", names->name,
                       "; or choose another --name"));
    }
  }
  return Issue(
      *folder, *authority,
      {names->name, {names->uri}, names->dns_names, names->ip_addresses, request.role == "daemon"},
      request.days * kDayS, now_s);
}

absl::StatusOr<PkiEntry> RenewInPki(const std::string& path, const std::string& name, int days,
                                    int64_t now_s) {
  absl::Status status = CheckPkiName(name);
  if (status.ok() && days != 0) status = CheckDays(days);
  if (!status.ok()) return status;
  const absl::StatusOr<Folder> folder = Folder::Open(path);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<KeyAndCertificate> authority = folder->Authority();
  if (!authority.ok()) return authority.status();
  if (!folder->Has(name + ".crt")) return NoSuchName(path, name);
  const absl::StatusOr<PkiEntry> before = ReadEntry(*folder, name, now_s);
  if (!before.ok()) return before.status();
  if (before->state == PkiState::kRevoked) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the certificate of ", name, " is revoked; issue a new one: rollcall pki issue ", path,
        " --role=", before->role, " --name=", name));
  }
  const CertificateFacts facts =
      ParseCertificate(ReadWatchedFile(folder->Path(name + ".crt")).value_or(""))
          .value_or(CertificateFacts());
  const int64_t seconds =
      days != 0 ? days * kDayS : facts.not_after_s - facts.not_before_s - kBackdateS;
  return Issue(*folder, *authority,
               {name, facts.uris, facts.dns_names, facts.ip_addresses, before->role == "daemon"},
               seconds, now_s);
}

absl::StatusOr<int> RevokeInPki(const std::string& path, const std::string& name, int64_t now_s) {
  if (absl::Status status = CheckPkiName(name); !status.ok()) return status;
  const absl::StatusOr<Folder> folder = Folder::Open(path);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<KeyAndCertificate> authority = folder->Authority();
  if (!authority.ok()) return authority.status();
  if (!folder->Has(name + ".crt")) return NoSuchName(path, name);
  const absl::StatusOr<RevocationList> revoked = folder->Revoked();
  if (!revoked.ok()) return revoked.status();
  const std::vector<RevokedSerial> serials = ToRevoke(*folder, *revoked, name, now_s);
  if (serials.empty()) return 0;
  if (absl::Status status = WriteRevocations(*folder, *authority, serials, now_s); !status.ok()) {
    return status;
  }
  return static_cast<int>(serials.size());
}

absl::StatusOr<PkiList> ListPki(const std::string& path, int64_t now_s) {
  const absl::StatusOr<Folder> folder = Folder::Open(path);
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<RevocationList> revoked = folder->Revoked();
  if (!revoked.ok()) return revoked.status();
  PkiList list;
  std::vector<PkiEntry>& entries = list.entries;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(path, error)) {
    const std::string name = file.path().stem().string();
    if (file.path().extension() != ".crt" || name == "ca") continue;
    const absl::StatusOr<PkiEntry> entry = ReadEntry(*folder, *revoked, name, now_s);
    if (entry.ok()) {
      entries.push_back(*entry);
    } else {
      list.problems.emplace_back(entry.status().message());
    }
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  std::sort(entries.begin(), entries.end(),
            [](const PkiEntry& a, const PkiEntry& b) { return a.name < b.name; });
  std::sort(list.problems.begin(), list.problems.end());
  return list;
}

}  // namespace rollcall
