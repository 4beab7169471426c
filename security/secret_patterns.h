// SPDX-License-Identifier: Apache-2.0
// What secrets look like in error messages, log lines, notes and command lines: one table.
//
// The formats of tokens (their beginnings, alphabets and lengths) are those of the rules of
// gitleaks (github.com/gitleaks/gitleaks, config/gitleaks.toml, commit b58d3f10, July 2026), which
// its maintainers keep up to date. The expressions are ours, and wider: a text with too much hidden
// does less harm than a secret that passes. Names and commands are those of the programs
// themselves.
#pragma once

namespace rollcall {

// An expression of RE2. Its first group is the secret; without a group, the whole match.
struct SecretPattern {
  const char* name;
  const char* expression;
};

// A quoted value: "x", 'x', `x`, b'x', \"x\" within a string, SecretStr('x'). A closing quote may
// be missing, because texts are cut.
#define ROLLCALL_QUOTED                                                                               \
  R"((?:[A-Za-z_.]{1,24}\()?[bBuUrRfF]{0,2}(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.|'\\'')*'?|`[^`]*`?))" \
  R"(|\\+"[^"\\]*(?:\\+"?)?|\\+'[^'\\]*(?:\\+'?)?)"
// A value without quotes around it. A quote inside it, as in ab'cd, is a part of it.
#define ROLLCALL_BARE R"([^\s"';]+(?:["'][^\s"';,)}\]>:]+)*)"
#define ROLLCALL_VALUE "(" ROLLCALL_QUOTED "|" ROLLCALL_BARE ")"
// Between a name and its value: "name": value, name=value, name := value, name%3Dvalue.
#define ROLLCALL_IS \
  R"((?:\\*["'`]|&quot;|&#3[49];|%22)?\]?[ \t]*(?::=|=>|[=:]|%3[aAdD])[ \t]*(?:&quot;|&#3[49];|%22)?)"
// Characters that keys are made of: too many of them, and among them a digit, for a word.
#define ROLLCALL_RANDOM R"([A-Za-z+]{0,20}[0-9][A-Za-z0-9+/]{15,}={0,2})"
// Between a flag and its value: a blank, or the next word of a list as Python prints it.
#define ROLLCALL_GAP R"((?:\s+|\\*["']\s*,\s*[bu]?\\*["']))"
// What stands before "token" where it is a secret; alone it is also a word of language models:
// pad_token, --max-tokens, tokens=512.
#define ROLLCALL_TOKEN_OF                                                                        \
  "(?:auth|access|api|hf|hub|huggingface|github|gh|gitlab|wandb|refresh|session|security|oauth|" \
  "oauth2|bearer|slack|bot|service|personal|login|registry|user|vault|private|job|deploy|csrf|"  \
  "xsrf|id|jwt|client|app|npm|pypi|identity|admin|root|secret|account|team|project|device|"      \
  "cloudflare|cf|do|digitalocean|databricks|telegram|discord|replicate|sonar|sentry|grafana)"
// Names of passwords and keys, also as the end of a longer name.
#define ROLLCALL_SECRET_NAME                                                                              \
  "(?:passwords?|passwd|passphrase|passcode|passwort|kennwort|senha|secrets?|credentials?|secret[_-]?id|" \
  "client[_-]?secret|bind[_-]?pw|root[_-]?pw|user[_-]?pwd|"                                               \
  "(?:api|access|secret|secret[_-]?access|private|signing|encryption|auth|account|storage|"               \
  "shared|shared[_-]?access|master|subscription|functions?|license|service|deploy|session|"               \
  "consumer|webhook|publishable|wandb|comet|neptune|openai|anthropic|hf|huggingface|stripe|"              \
  "nvidia|ngc|github|gitlab|slack|sendgrid|datadog|dd|cohere|groq|mistral|pinecone|together|"             \
  "fireworks|replicate|gemini|google|aws|azure|gcp|tavily|serp|serpapi|app|admin|team|write)"             \
  "[._-]?keys?(?:[_-]?id)?|account[._-]key(?:[.][a-z0-9.-]+)?|secret_key_base)"

inline constexpr SecretPattern kSecretPatterns[] = {
    // https://user:PASSWORD@host, https://TOKEN@host
    {"password in a URL", R"(://[^\s/:@?#\[]*:([^\s/?#]+)@)"},
    // A password may contain / ? and #. Digits and a slash are a port and a path.
    {"password with a slash in a URL",
     R"(://[^\s/:@?#\[]*:([^\s/?#]*[^\s/?#0-9][^\s/?#]*[/?#][^\s"'<>]*)@)"},
    {"token in a URL", R"(://([^\s/:@?#]{16,})@)"},
    {"password of a host without a scheme",
     R"(\b[A-Za-z_][A-Za-z0-9_.-]*:([^\s/@:"']*[^\s/@:0-9"'][^\s/@:"']*)@)"
     R"((?:localhost\b|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?:\.[a-z]{2,}\b|:[0-9]{2,5}\b)))"},
    {"signature in a URL",
     R"((?i)[?&#](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token)"
     R"(|x-goog-signature|x-goog-credential|token|access_token|id_token|refresh_token|api_key)"
     R"(|apikey|key|password|pwd|pass|secret|client_secret)=([^&\s"']+))"},
    {"passwords, a list", "(?i)" ROLLCALL_SECRET_NAME ROLLCALL_IS R"((\[[^\]]*\]?|\{[^}]*\}?))"},
    // --password=SECRET, "api_key": "SECRET", clientSecret: SECRET, DB_PASSWORD_PROD=SECRET
    {"password, assigned",
     "(?i)" ROLLCALL_SECRET_NAME
     "[0-9]{0,2}(?:[_-](?:prod|production|dev|staging|test|old|new|value))?" ROLLCALL_IS
         ROLLCALL_VALUE},
    {"password, as a flag",
     R"((?i)(?:^|[\s"'])--?(?:[a-z0-9]+[_-])*)" ROLLCALL_SECRET_NAME ROLLCALL_GAP
     "(" ROLLCALL_QUOTED R"(|[^\s"'-][^\s"']*))"},
    // Not --pass 2 of a compiler, nor PWD=/home/me, nor "the forward pass: 3 ms".
    {"pass",
     R"((?i)(?:^|[^a-z0-9])(?:pass|pw|pwd|psw|userpass|sshpass)(?:["']?[ \t]*=[ \t]*|["'][ \t]*:[ \t]*|%3d))"
     R"(([^\s"';/~.,=\]0-9][^\s"';]*|[0-9]+[^\s"';0-9,.)\]][^\s"';]*|[0-9]{4,}))"},
    {"pass, in YAML",
     R"((?im)(?:^|[{,?])[ \t]*(?:pass|pw|pwd)[ \t]*:[ \t]*([^\s"';/~.,0-9][^\s"';,}]*))"},
    {"pass, quoted",
     R"((?i)(?:^|[^a-z0-9])(?:pass|pw|pwd|psw|userpass|sshpass)["']?(?:[ \t]*[=:][ \t]*|\s+))"
     "(" ROLLCALL_QUOTED ")"},
    {"pass, as a flag",
     R"((?i)(?:^|[\s"'])--?(?:[a-z0-9]+[_-])*(?:(?:db|store|key|user|root|admin|http|smtp|ftp|ldap|sql|ssh|sudo)?)"
     R"((?:pass|pw|pwd)|jwt|otp|pin|psk|bearer|creds?|sas|dsn)(?:=|\s+|["']\s*,\s*["']))"
     R"(([^\s"'0-9/-][^\s"']*|[0-9]+[^\s"'0-9)\]][^\s"']*|[0-9]{4,}))"},
    {"word and password",
     R"((?i)\b(?:pass(?:word|phrase|code|wd)|pw)(?:\s+|\s*:\s*)(?:(?:is|was|=)\s*:?\s*)?["'`]?)"
     R"(([^\s"'`]*[a-z][^\s"'`]*[0-9!#$%&*@^][^\s"'`]*))"},
    {"word and key",
     R"((?i)\b(?:(?:api|access|secret|license)[ _-]?key|secret)(?:\s+|\s*[:=]\s*)(?:is\s*:?\s*)?["'`]?)"
     R"(([a-z]{2,20}[0-9][a-z0-9]{2,}|[0-9]+[a-z][a-z0-9]{5,}))"},
    {"word and token",
     R"((?i)\btoken\s+(?:is\s*:?\s*)?["'`]?([a-z]{2,20}[0-9][a-z0-9]{7,}|[0-9]+[a-z][a-z0-9]{12,}))"},
    {"user/password",
     R"((?i)\b(?:user(?:name)?|login)\s*/\s*(?:pass(?:word)?|pw)\s*[:=]?\s*([^\s/:]+\s*[/:]\s*\S+))"},
    {"credentials",
     R"((?i)\b(?:creds?|credentials?)\s*[:=]?\s+["']?[^\s:/"']+\s?[:/]\s?([^\s"']+))"},
    {"password in SQL",
     R"((?i)\b(?:identified\s+(?:with\s+\S+\s+)?by|password)\s+("[^"]*"?|'[^']*'?))"},
    {"password in XML",
     R"((?i)<[a-z:]*(?:password|passwd|secret|token|apikey|api_key|accesskey)>([^<]+))"},
    {"password in an attribute of XML",
     R"((?i)(?:password|secret|token|apikey)["']?\s+value=("[^"]*"?|'[^']*'?))"},
    {"token, as a flag",
     "(?i)--?(?:(?:[a-z0-9]+[_-])*" ROLLCALL_TOKEN_OF "[_-])?"
     R"(token(?:=|\s+|["']\s*,\s*["'])()" ROLLCALL_QUOTED R"(|[^\s"'-][^\s"']{5,}))"},
    {"token, assigned", "(?i)(?:^|[^a-z0-9])(?:[a-z0-9]+[_-])*?" ROLLCALL_TOKEN_OF
                        "[_-]?token" ROLLCALL_IS "(" ROLLCALL_QUOTED R"(|[^\s"';]{6,}))"},
    {"token, alone",
     R"((?i)(?:^|[\s"'{,;(:])token\\*["']?\s?[=:]\s?\\*["']?)"
     R"(([^\s"',;&}\])\\]{12,}|[a-z]{2,}[0-9][a-z0-9_-]{2,}|[0-9]+[a-z][a-z0-9_-]{5,}))"},
    {"auth, assigned",
     R"((?i)(?:^|[\s"'{,(])auth\\*["']?\s?[=:]\s?\\*["']?([a-z]{2,}[0-9][a-z0-9_-]{2,}|[0-9]+[a-z][a-z0-9_-]{5,}))"},
    {"token, by its value",
     R"((?i)(?:token|auth|credential|creds|jwt)s?)" ROLLCALL_IS R"(["']?()" ROLLCALL_RANDOM ")"},
    {"key, by its value", R"((?i)[a-z0-9]?keys?)" ROLLCALL_IS R"(["']?()" ROLLCALL_RANDOM ")"},
    {"key, as a flag",
     R"((?i)--?(?:[a-z0-9]+[_-])*(?:key|auth|jwt|creds|credential)(?:\s+|["']\s*,\s*["']))"
     R"(["']?()" ROLLCALL_RANDOM ")"},
    // MY_TOKEN=SECRET, DB_PWD=SECRET; PWD alone is a folder.
    {"environment",
     R"((?:^|[^A-Za-z0-9_])[A-Z0-9_]*(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|API_?KEY)"
     R"(|ACCESS_KEY(?:_ID)?|SECRET_KEY|PRIVATE_KEY|_KEY|_PWD|_PASS|_AUTH|_CREDENTIALS?|_COOKIE|_PAT)"
     R"(|_SAS|_DSN|_PIN|_PSK|SSHPASS)[0-9]{0,2}(?:_(?:PROD|DEV|STAGING|TEST|OLD|NEW))?(?:\\*["']?(?:=|: ?)|["']\][ \t]*=[ \t]*))" ROLLCALL_VALUE},
    {"setenv",
     R"(\b(?:set|setenv|ENV|ARG|export)\s+[A-Z0-9_]*(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|API_?KEY|_KEY|_PWD|_PASS)\s+)"
     R"(("[^"]*"?|'[^']*'?|\S+))"},
    {"connection string", R"((?i);\s*(?:pwd|password|accountkey|sharedaccesskey|sharedsecret|sig)=)"
                          R"(([^;\s"']+))"},
    // A program's own way to be given a password.
    {"curl -u, with quotes",
     R"(\bcurl\b[^\n|]*?[\s"'](?:-u|-U|--user|--proxy-user)(?:["'],\s*["']|=|\s*)["][^":]*:([^"]+))"},
    {"curl -u with a number",
     R"(\b(?:curl|wget|http|https|xh|httpie)\b[^\n|]*?[\s"'](?:-u|-U|--user|--proxy-user|-a)(?:["'],\s*["']|=|\s*))"
     R"(["']?[^\s:"']*:([^\s"']+))"},
    {"curl -u in quotes",
     R"([\s"'](?:-u|-U|--user|--proxy-user)(?:["'],\s*["']|=|\s*)'[^':]*:([^']+)')"},
    {"curl -u",
     R"((?i)(?:^|[\s"'])(?:-u|-U|--user|--proxy-user|--auth|--userpwd)(?:["'],\s*["']|=|\s*)["']?)"
     R"([^\s:"'/@]+:([^\s"']*[^\s"'0-9][^\s"']*))"},
    {"user=name:password", R"((?i)\b(?:user|userpwd|auth|login|credentials?)=["']?[^\s:"'/=&,;]+:)"
                           R"(([^\s"'&,;/]*[^\s"'0-9&,;/][^\s"'&,;]*))"},
    {"tuple of user and password",
     R"((?i)\bauth\s*=\s*\(\s*["'][^"']*["']\s*,\s*("[^"]*"?|'[^']*'?))"},
    {"curl --cert",
     R"(\bcurl\b[^\n|]*?\s(?:-E|--cert|--proxy-cert)(?:["'],\s*["']|=|\s*)[^\s:]+:([^\s"']+))"},
    {"echo into sudo",
     R"(\becho\s+(?:-n\s+)?("[^"]*"|'[^']*'|[^\s|]+)\s*\|\s*(?:sudo|docker|podman|helm|oc|gh|kinit|passwd|chpasswd|openssl|gpg|wandb)\b)"},
    {"here string for sudo",
     R"(\b(?:sudo|docker|podman|kinit|openssl|gpg)\b[^\n|]*?<<<\s*("[^"]*"|'[^']*'|\S+))"},
    {"from-literal", R"(--from-literal(?:=|\s+)["']?[^\s=]+=("[^"]*"?|'[^']*'?|[^\s"']+))"},
    {"ssh-keygen -N", R"(\bssh-keygen\b[^\n|]*?\s-[NP]\s*("[^"]+"?|'[^']+'?|[^\s"'-]\S*))"},
    {"openssl -k",
     R"(\bopenssl\b[^\n|]*?\s-(?:k|K|pass|passin|passout)\s+("[^"]*"?|'[^']*'?|[^\s"']+))"},
    {"rabbitmqctl",
     R"(\b(?:rabbitmqctl|htpasswd|mosquitto_passwd)\b[^\n|]*?\b(?:add_user|change_password|-b\S*\s+\S+|-\S*b)\s+\S+\s+(\S+))"},
    {"mc alias",
     R"(\b(?:mc|mcli)\s+(?:alias\s+set|config\s+host\s+add)\s+\S+\s+\S+\s+(\S+\s+\S+))"},
    {"npm config", R"((?i)\b(?:npm|yarn|pnpm)\b[^\n|]*?:_(?:authtoken|auth|password)[\s=]+(\S+))"},
    {"twine -p",
     R"(\b(?:twine|pypi-cli|flit|poetry|hatch)\b[^\n|]*?\s-p\s*("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*))"},
    {"snmp -c", R"(\bsnmp[a-z]+\b[^\n|]*?\s-[cAX]\s*("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*))"},
    {"conda channel", R"(/t/([a-z]{2}-[0-9a-f-]{30,}|<?[A-Za-z0-9-]{20,}>?)/)"},
    {"Oracle", R"((?i)\bthin:[^\s/@]+/([^\s@]+)@)"},
    {"sshpass",
     R"(\bsshpass(?:["'],\s*["']|\s+)(?:-[vheP]\s*\S*\s+)*-p(?:["'],\s*["']|\s*)("[^"]*"?|'[^']*'?|[^\s"']+))"},
    {"mysql -p",
     R"(\b(?:mysql|mysqldump|mysqladmin|mysqlsh|mysqlimport|mariadb|mariadb-dump|mongo|mongosh)"
     R"(|mongodump|7z|7za|unrar)\b[^\n|]*?[\s"']-p(?:["'],\s*["']|\s?)("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*))"},
    {"unzip -P",
     R"(\b(?:unzip|zip|isql|sqlcmd|bcp|tsql|freebcp)\b[^\n|]*?[\s"']-P(?:["'],\s*["']|\s?)("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*))"},
    {"redis-cli -a",
     R"(\b(?:redis-cli|redis-benchmark|keydb-cli|valkey-cli)\b[^\n|]*?[\s"']-a(?:["'],\s*["']|\s*)([^\s"']+))"},
    {"docker login -p",
     R"(\b(?:docker|podman|nerdctl|buildah|skopeo|helm|oc|az|crane|oras|regctl|gh|cf|ibmcloud)\b)"
     R"([^\n|]*?\blogin\b[^\n|]*?[\s"'](?:-p|-w|--creds)(?:["'],\s*["']|=|\s*)("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*))"},
    {"ldapsearch -w",
     R"(\b(?:ldap[a-z]+|rabbitmqadmin|ipmitool|snmpget|snmpwalk|smbclient)\b[^\n|]*?)"
     R"([\s"']-[wPAXU](?:["'],\s*["']|\s+)("[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*))"},
    {"sqlplus", R"(\b(?:sqlplus|sqlldr|expdp|impdp)\b[^\n|]*?\s[A-Za-z0-9_]+/([^\s@]+))"},
    {"openssl -passin", R"((?i)\bpass:([^\s"']{4,}))"},
    {"requirepass", R"((?i)\b(?:requirepass|masterauth|auth_pass)\s+["']?([^\s"']+))"},
    {"login of a tool",
     R"(\b(?:wandb|huggingface-cli|hf|ngc|comet|vault|npm|gh|doctl|databricks|heroku|pulumi)\s+)"
     R"((?:auth\s+)?login\s+(?:--?[a-z-]+\s+)*([A-Za-z0-9_.-]{16,}))"},
    {"wandb", R"((?i)\bwandb[^\n]{0,60}?\b([0-9a-f]{40})\b)"},
    {"netrc", R"((?i)\blogin\s+\S+\s+(?:account\s+\S+\s+)?password\s+(\S+))"},
    {"netrc without a login",
     R"((?i)\b(?:machine\s+\S+|default)\s+(?:login\s+\S+\s+)?password\s+(\S+))"},
    {"pgpass", R"(\b[A-Za-z0-9_.*-]+:(?:5432|6432|\*):[^\s:]+:[^\s:]+:([^\s"']+))"},
    {"hash of a password",
     R"(\$(?:1|2[abxy]|5|6|7|y|apr1|argon2id?|pbkdf2[a-z0-9-]*|scrypt)\$[A-Za-z0-9./+=,$-]{20,})"},
    {"Docker config", R"((?i)["']auth["']\s*:\s*["']([A-Za-z0-9+/=_-]{8,}))"},
    {"npm", R"((?i)\b_(?:auth|authtoken|password)\s*=\s*["']?([^\s"']+))"},
    // Headers. A backslash, a plus or %20 may stand for the blank.
    {"bearer",
     R"((?i)\bbearer(?:\\*\s|\\+|%20|\+|["':=])+([a-z._~+/=-]{0,20}[0-9][a-z0-9._~+/=-]{3,})"
     R"(|[a-z0-9._~+/=-]{16,}))"},
    {"digest", R"((?i)\b(?:digest|aws4-hmac-sha256|hawk|oauth)\s+([a-z_-]+=[^\r\n]+))"},
    {"authorization",
     R"((?i)authorization(?:\\*["'])?(?:\\*\s)*(?:[:=]|%3a)(?:\\*[\s"']|%20)*)"
     R"((?:basic|bearer|token|digest|negotiate|ntlm|apikey|key|hawk|aws4-hmac-sha256|sso-key|splunk))"
     R"((?:\\*\s|%20|\+)+([^\r\n"'\\,]+))"},
    {"authorization without a scheme",
     R"((?i)authorization(?:\\*["'])?\s*(?:[:=]|%3a)(?:\\*[\s"']|%20)*)"
     R"(([a-z0-9._~+/=-]{24,}|[a-z._~+/=-]*[0-9][a-z0-9._~+/=-]{2,}))"},
    {"basic", R"((?i)\bbasic(?:\\*\s|%20|\+)+([A-Za-z0-9+/]{6,}={1,2}|[A-Za-z0-9+/]{20,}))"},
    {"header of a key",
     R"((?i)\b(?:x-[a-z0-9-]*(?:key|token|secret|auth|signature|password)|private-token|job-token)"
     R"(|api-key|apikey|ocp-apim-subscription-key|proxy-authorization|x-registry-auth)["']?)"
     R"((?:\\*\s)*(?::|%3a)(?:\\*\s|%20)*["']?([^\s"'\\,]+))"},
    {"cookie", R"((?i)\b(?:set-)?cookie2?["']?\s*(?::|%3a)\s*([^\s"'][^\r\n"']*))"},
    {"cookie, assigned",
     R"((?i)\bcookies?["']?\s*[=:]\s*(\{[^}]*\}?|"[^"]*"?|'[^']*'?|[^\s"';]{4,}))"},
    {"cookie, as a flag",
     R"((?i)(?:\s--cookie(?:=|\s+)|\bcurl\b[^\n|]*?\s-b\s*)("[^"]*"?|'[^']*'?|[^\s"']*=[^\s"']*))"},
    {"session",
     R"((?i)\b(?:[a-z]*session_?id|j?sessionid|phpsessid|asp\.net_sessionid|connect\.sid|laravel_session)"
     R"(|_?[a-z]+_session|sid|csrf_?token|xsrf-token|remember_token)["']?\s*[=:]\s*["']?)"
     R"(([A-Za-z0-9%._~+/=-]{8,}))"},
    // Keys that their shape shows.
    {"AWS", R"(\b((?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA)[A-Z0-9]{16})\b)"},
    {"AWS Bedrock", R"(\b(?:ABSK[A-Za-z0-9+/]{60,}={0,2}|bedrock-api-key-[A-Za-z0-9+/=_-]{20,}))"},
    {"AWS secret", R"((?i)\baws[^\n]{0,40}?["'=:\s]([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$))"},
    {"Azure client secret",
     R"((?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}))"},
    {"Azure storage key", R"((?:^|[^A-Za-z0-9+/])([A-Za-z0-9+/]{86}==))"},
    {"Google",
     R"(\b(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}))"},
    {"GitHub", R"(\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}))"},
    {"GitLab",
     R"(\b(?:gl(?:pat|dt|ft|soat|rt|rtr|cbt|ptt|imt|agent|oas|ffct|wt)-[A-Za-z0-9_.-]{20,}|GR1348941[A-Za-z0-9_-]{20}))"},
    {"Hugging Face", R"(\b(?:hf|api_org)_[A-Za-z0-9]{30,})"},
    {"OpenAI, Anthropic",
     R"(\bsk-(?:[A-Za-z0-9]{20,}|(?:proj|ant|svcacct|admin|or|lf|None)-[A-Za-z0-9_-]{20,}))"},
    {"Stripe",
     R"(\b(?:(?:sk|rk|pk)_(?:test|live|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}))"},
    {"Slack",
     R"((?i)\b(?:xox[abceoprsd](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}))"},
    {"Slack web hook",
     R"(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9/+_-]+))"},
    {"web hook of a chat",
     R"((?i)(?:discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/|logic\.azure\.com[^\s]*/triggers/)"
     R"(|chat\.googleapis\.com/v1/spaces/|api\.telegram\.org/bot|events\.pagerduty\.com/integration/)"
     R"(|open\.feishu\.cn/open-apis/bot/v2/hook/)([^\s"'<>]+))"},
    {"Telegram", R"(\b([0-9]{8,10}:AA[A-Za-z0-9_-]{30,}))"},
    {"npm, by its shape", R"(\bnpm_[A-Za-z0-9]{30,})"},
    {"PyPI", R"(\bpypi-[A-Za-z0-9_-]{16,})"},
    {"Vault",
     R"((?:^|[^A-Za-z0-9_.])((?:hv[sbr]\.[A-Za-z0-9_-]{20,}|[sbr]\.[A-Za-z]{0,12}[0-9][A-Za-z0-9]{11,24}))\b)"},
    {"wandb, by its shape", R"(\bwandb_v[0-9]_[A-Za-z0-9_]{20,})"},
    {"Databricks", R"(\b(?:dapi|dkea|dose)[a-f0-9]{32}(?:-[0-9])?)"},
    {"DigitalOcean", R"(\bdo[opr]_v1_[a-f0-9]{40,})"},
    {"Docker", R"(\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,})"},
    {"NVIDIA", R"(\bnvapi-[A-Za-z0-9_-]{20,})"},
    {"SendGrid, Mailgun",
     R"(\b(?:SG\.[A-Za-z0-9=_.-]{30,}|key-[0-9a-f]{32}|xkeysib-[a-f0-9]{40,}[A-Za-z0-9-]*))"},
    {"Twilio", R"(\b(?:SK|AC)[0-9a-f]{32}\b)"},
    {"Grafana",
     R"(\b(?:glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9]{40,}={0,3}))"},
    {"Atlassian", R"(\bAT(?:ATT3|CTT3|BB|SSO)[A-Za-z0-9_=-]{20,})"},
    {"other services",
     R"(\b(?:gsk_|r8_|pul-|lin_api_|shpat_|shpca_|shppa_|shpss_|rubygems_|sntryu_|sntrys_|rdme_|pnu_)"
     R"(|secret_|ntn_|sgp_|sbp_|fo1_|fm1[ar]_|fm2_|tskey-|lsv2_(?:pt|sk)_|figd_|tvly-|phc_|posthog_)"
     R"(|duffel_(?:test|live)_|shippo_(?:test|live)_|pplx-|xai-|jina_|HRKU-AA|PMAK-|NRAK-|p8e-|AKCp)"
     R"(|EZAK|EZTK|FLWSECK_TEST-|ops_eyJ|LTAI|AKID|AGE-SECRET-KEY-1|CLOJARS_|sha256~|fio-u-|dp\.pt\.)"
     R"(|sm_[aps]at_|API-|EAAA|EAAC|cmVmd|4b1d|tk-us-)[A-Za-z0-9]{16,}[A-Za-z0-9_.=+/-]*)"},
    {"other services, in parts",
     R"(\b(?:pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{20,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{20,})"
     R"(|dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20,}|(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9.]{20,}))"},
    {"Terraform", R"(\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,})"},
    {"1Password", R"(\bA3-[A-Z0-9]{6}-[A-Z0-9-]{20,})"},
    {"Rollcall", R"(\brollcall_[A-Za-z0-9_-]{43})"},
    {"JSON web token", R"(\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*)"},
    // Without its end too: texts are cut.
    {"private key", R"((?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
                    R"((?:.*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|.*))"},
};

#undef ROLLCALL_QUOTED
#undef ROLLCALL_BARE
#undef ROLLCALL_VALUE
#undef ROLLCALL_IS
#undef ROLLCALL_RANDOM
#undef ROLLCALL_GAP
#undef ROLLCALL_TOKEN_OF
#undef ROLLCALL_SECRET_NAME

}  // namespace rollcall
