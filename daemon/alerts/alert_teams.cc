// SPDX-License-Identifier: Apache-2.0
// The message for Microsoft Teams. A webhook of its Workflows takes a message with one Adaptive
// Card: https://learn.microsoft.com/connectors/teams/#microsoft-teams-webhook. The message may have
// 28 KB:
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook
#include "absl/strings/str_cat.h"
#include "daemon/alerts/alert_messages.h"

namespace rollcall {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestFact = 500;
constexpr size_t kLongestText = 2000;

// A TextBlock would take text of the job for Markdown. A TextRun does not:
// https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features
Json Run(const std::string& text) { return {{"type", "TextRun"}, {"text", text}}; }

Json Block(Json runs) { return {{"type", "RichTextBlock"}, {"inlines", std::move(runs)}}; }

const char* Color(const AlertValues& values, AlertEvent event) {
  if (event == AlertEvent::kAcknowledged) return "Accent";
  return event == AlertEvent::kResolved && ValueOf(values, "state") == "resolved" ? "Good"
                                                                                  : "Attention";
}

Json FirstBlock(const AlertValues& values, AlertEvent event) {
  Json run = Run(OneLine(ValueOf(values, "headline"), kLongestText));
  run["weight"] = "Bolder";
  run["color"] = Color(values, event);
  return Block({run});
}

Json FactBlock(const std::string& title, const std::string& value) {
  Json bold = Run(absl::StrCat(title, ": "));
  bold["weight"] = "Bolder";
  return Block({bold, Run(value)});
}

}  // namespace

std::string TeamsMessage(const AlertValues& values, AlertEvent event) {
  Json body = Json::array({FirstBlock(values, event)});
  for (const auto& [title, value] : FactsInWords(values, kLongestFact)) {
    body.push_back(FactBlock(title, value));
  }
  const std::string advice = OneLine(ValueOf(values, "advice"), kLongestText);
  if (!advice.empty()) body.push_back(FactBlock("Advice", advice));
  const std::string report = OneLine(ValueOf(values, "report"), kLongestFact);
  if (!report.empty()) body.push_back(FactBlock("Report", report));
  Json card = {{"$schema", "http://adaptivecards.io/schemas/adaptive-card.json"},
               {"type", "AdaptiveCard"},
               {"version", "1.4"},
               {"msteams", {{"width", "Full"}}},
               {"body", body}};
  Json actions = Json::array();
  for (const auto& [title, link] : LinksInWords(values, event)) {
    actions.push_back({{"type", "Action.OpenUrl"}, {"title", title}, {"url", link}});
  }
  if (!actions.empty()) card["actions"] = actions;
  return DumpJson(
      {{"type", "message"},
       {"attachments", Json::array({{{"contentType", "application/vnd.microsoft.card.adaptive"},
                                     {"contentUrl", nullptr},
                                     {"content", card}}})}});
}

}  // namespace rollcall
