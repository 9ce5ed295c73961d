package hook

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"svc/internal/errs"
)

// IntegrationInfo describes a kind of integration: its settings and its messages.
type IntegrationInfo struct {
	Kind        Kind
	Title       string
	Description string
	Properties  []Property
	Triggers    []Trigger
	Channels    bool // each trigger can have a channel
	Labels      bool // messages about issues can be limited to labels

	message func(h *Hook, d *Delivery, m message) chatRequest // nil: no requests are sent
}

// Property is a setting of an integration, by its name in the API.
type Property struct {
	Name     string
	Label    string
	Hint     string
	Example  string
	Secret   bool // stored encrypted and never shown
	Required bool

	valid   *regexp.Regexp           // nil: any text of one line
	problem func(text string) string // says what is wrong; nil: nothing is
}

// chatRequest is the request of a message.
type chatRequest struct {
	method string // empty: POST
	url    string
	header map[string]string
	body   any
}

// webhookProperty is the URL of an incoming webhook, which is a secret.
func webhookProperty(example string) Property {
	return Property{Name: "webhook", Label: "Webhook", Hint: "The URL of an incoming webhook of the chat service.", Example: example, Secret: true, Required: true}
}

// number matches the ID of a message thread, and priority that of a Pushover message.
// Emergency priority is not supported: receivers would have to acknowledge it.
var (
	number   = regexp.MustCompile(`^[0-9]{1,18}$`)
	priority = regexp.MustCompile(`^(-2|-1|0|1)$`)
)

var (
	// mostTriggers are the triggers of all chat integrations but Pushover.
	mostTriggers = []Trigger{Push, TagPush, Notes, ConfidentialNote, Issues, ConfidentialIssue, MergeRequests, Pipelines, WikiPages}
	allTriggers  = append(slices.Clone(mostTriggers), Deployments)
)

// Integrations returns the kinds of integrations, by title.
func Integrations() []IntegrationInfo {
	named := []Property{
		{Name: "username", Label: "Username (optional)"},
		{Name: "channel", Label: "Default channel (optional)", Example: "general"},
	}
	return []IntegrationInfo{
		{
			Kind: "discord", Title: "Discord Notifications", Description: "Send notifications about project events to a Discord channel.",
			Properties: []Property{webhookProperty("https://discord.com/api/webhooks/…")}, Triggers: allTriggers, message: discordMessage,
		},
		{
			Kind: ExternalWiki, Title: "External wiki", Description: "Link to an external wiki from the sidebar.",
			Properties: []Property{{Name: "external_wiki_url", Label: "URL of the external wiki", Example: "https://example.org/wiki", Required: true, valid: webAddress}},
		},
		{
			Kind: "hangouts-chat", Title: "Google Chat", Description: "Send notifications about project events to a Google Chat space.",
			Properties: []Property{webhookProperty("https://chat.googleapis.com/v1/spaces/…")}, Triggers: mostTriggers, message: googleMessage,
		},
		{
			Kind: "matrix", Title: "Matrix notifications", Description: "Send notifications about project events to a Matrix room.",
			Properties: []Property{
				{Name: "hostname", Label: "Hostname (optional)", Hint: "URL of the homeserver. Empty: " + matrixHost, Example: matrixHost},
				{Name: "token", Label: "Token", Hint: "Access token of the user who sends the messages.", Secret: true, Required: true},
				{Name: "room", Label: "Room identifier", Example: "!qPKKM111FFKKsfoCVy:matrix.org", Required: true},
			},
			Triggers: mostTriggers, message: matrixMessage,
		},
		{
			Kind: Mattermost, Title: "Mattermost notifications", Description: "Send notifications about project events to Mattermost channels.",
			Properties: append([]Property{webhookProperty("https://mattermost.example.org/hooks/…")}, named...),
			Triggers:   allTriggers, Channels: true, Labels: true, message: slackMessage,
		},
		{
			Kind: "microsoft-teams", Title: "Microsoft Teams notifications", Description: "Send notifications about project events to Microsoft Teams.",
			Properties: []Property{webhookProperty("https://example.webhook.office.com/…")}, Triggers: mostTriggers, message: teamsMessage,
		},
		{
			Kind: PipelinesEmail, Title: "Pipeline status emails", Description: "Email the pipeline status to a list of recipients.",
			Properties: []Property{{Name: "recipients", Label: "Recipients", Hint: "Email addresses, separated by commas.", Example: "team@example.org", Required: true, problem: recipientsProblem}},
			Triggers:   []Trigger{Pipelines},
		},
		{
			Kind: "pumble", Title: "Pumble", Description: "Send notifications about project events to a Pumble channel.",
			Properties: []Property{webhookProperty("https://api.pumble.com/workspaces/…")}, Triggers: mostTriggers, message: pumbleMessage,
		},
		{
			Kind: "pushover", Title: "Pushover", Description: "Get real-time notifications about pushes on your device.",
			Properties: []Property{
				{Name: "api_key", Label: "API key", Hint: "The key of your application.", Secret: true, Required: true},
				{Name: "user_key", Label: "User key", Secret: true, Required: true},
				{Name: "device", Label: "Devices (optional)", Hint: "Empty: all active devices."},
				{Name: "priority", Label: "Priority", Hint: "-2 is lowest, 0 is normal, 1 is high.", Example: "0", Required: true, valid: priority},
				{Name: "sound", Label: "Sound (optional)", Example: "pushover"},
			},
			Triggers: []Trigger{Push}, message: pushoverMessage,
		},
		{
			Kind: Slack, Title: "Slack notifications", Description: "Send notifications about project events to Slack.",
			Properties: append([]Property{webhookProperty("https://hooks.slack.com/services/…")}, named...),
			Triggers:   allTriggers, Channels: true, Labels: true, message: slackMessage,
		},
		{
			Kind: "telegram", Title: "Telegram", Description: "Send notifications about project events to Telegram.",
			Properties: []Property{
				{Name: "hostname", Label: "Hostname (optional)", Hint: "URL of the Telegram API. Empty: " + telegramHost, Example: telegramHost},
				{Name: "token", Label: "Token", Hint: "Token of the bot.", Example: "123456:ABC-DEF1234…", Secret: true, Required: true},
				{Name: "room", Label: "Channel identifier", Hint: "ID of the chat, or the name of the channel.", Example: "@channelusername", Required: true},
				{Name: "thread", Label: "Message thread ID (optional)", Hint: "Topic in a forum supergroup.", valid: number},
			},
			Triggers: mostTriggers, message: telegramMessage,
		},
		{
			Kind: "webex-teams", Title: "Webex Teams", Description: "Send notifications about project events to Webex Teams.",
			Properties: []Property{webhookProperty("https://api.ciscospark.com/v1/webhooks/incoming/…")}, Triggers: mostTriggers, message: webexMessage,
		},
	}
}

// Info returns the description of an integration. NotFound for an unknown one.
func Info(kind Kind) (IntegrationInfo, error) {
	all := Integrations()
	at := slices.IndexFunc(all, func(i IntegrationInfo) bool { return i.Kind == kind })
	if at < 0 {
		return IntegrationInfo{}, errs.NotFound("Integration")
	}
	return all[at], nil
}

// TriggerInfos are the triggers of an integration, in the order of pages.
func (i IntegrationInfo) TriggerInfos() []TriggerInfo {
	return slices.DeleteFunc(slices.Clone(triggers), func(t TriggerInfo) bool { return !slices.Contains(i.Triggers, t.Trigger) })
}

// Defaults returns the triggers of a new integration: all except the confidential ones.
func (i IntegrationInfo) Defaults() []Trigger {
	return slices.DeleteFunc(slices.Clone(i.Triggers), func(t Trigger) bool { return t == ConfidentialIssue || t == ConfidentialNote })
}

// property returns the description of a property; nil if the integration lacks it.
func (i IntegrationInfo) property(name string) *Property {
	at := slices.IndexFunc(i.Properties, func(p Property) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &i.Properties[at]
}

// Property returns a property of an integration that is not secret.
func (h *Hook) Property(name string) string { return *h.value(Property{Name: name}) }

// value returns the address at which a property is stored. Write through it only if the
// property is not in a map: see setValue.
func (h *Hook) value(p Property) *string {
	switch {
	case p.Name == "webhook" && p.Secret:
		return &h.Secrets.Webhook
	case p.Name == "token" && p.Secret:
		return &h.Secrets.Token
	case p.Name == "username":
		return &h.Options.Username
	case p.Name == "channel":
		return &h.Options.Channel
	}
	values := h.Options.Values
	if p.Secret {
		values = h.Secrets.Values
	}
	text := values[p.Name]
	return &text
}

// setValue changes a property.
func (h *Hook) setValue(p Property, text string) {
	switch {
	case slices.Contains([]string{"username", "channel"}, p.Name), p.Secret && slices.Contains([]string{"webhook", "token"}, p.Name):
		*h.value(p) = text
	case p.Secret:
		h.Secrets.Values = with(h.Secrets.Values, p.Name, text)
	default:
		h.Options.Values = with(h.Options.Values, p.Name, text)
	}
}

func with(values map[string]string, name, text string) map[string]string {
	if values == nil {
		values = map[string]string{}
	}
	values[name] = text
	return values
}

// chat returns the request of a message about an event.
func (h *Hook) chat(d *Delivery, payload []byte) (chatRequest, []byte, error) {
	info, err := Info(h.Kind)
	if err != nil {
		return chatRequest{}, nil, err
	}
	if info.message == nil {
		return chatRequest{}, nil, errs.Invalid("This integration sends no messages.")
	}
	m, err := describe(d.Trigger, payload)
	if err != nil {
		return chatRequest{}, nil, err
	}
	r := info.message(h, d, m)
	body, err := json.Marshal(r.body)
	return r, body, err
}

// statusColor chooses the color of a message by the status that it is about.
func statusColor(status, none, success, failed, other string) string {
	switch status {
	case "":
		return none
	case "success":
		return success
	case "failed":
		return failed
	}
	return other
}

// slackMessage is the JSON of an incoming webhook of Slack, which Mattermost takes
// too: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks.
func slackMessage(h *Hook, d *Delivery, m message) chatRequest {
	out := object{"text": slackMarkup(m.text), "attachments": []any{}}
	if len(m.detail) > 0 {
		title := slackMarkup(say(m.title))
		out["attachments"] = []any{object{
			"title": title, "title_link": m.link, "text": slackMarkup.lines(m.detail, "\n"), "color": statusColor(m.status, "#345", "good", "danger", "warning"),
			"fallback": title, "mrkdwn_in": []string{"title", "text", "fallback", "fields"},
		}}
	}
	if name := h.Options.Username; name != "" {
		out["username"] = name
	}
	if channel := cmp.Or(h.Options.Channels[string(d.Trigger)], h.Options.Channel); channel != "" {
		out["channel"] = channel
	}
	return chatRequest{url: h.Secrets.Webhook, body: out}
}

// discordMessage: https://discord.com/developers/docs/resources/webhook#execute-webhook.
func discordMessage(h *Hook, _ *Delivery, m message) chatRequest {
	embed := object{"description": clip(markdownMarkup.lines(append([]line{m.text}, m.detail...), "\n"), 4000)}
	if m.title != "" {
		embed["title"], embed["url"] = clip(plainMarkup(say(m.title)), 250), m.link
	}
	embed["color"] = map[string]int{"none": 0x334455, "success": 0x2da160, "failed": 0xdd2b0e, "other": 0xfc9403}[statusColor(m.status, "none", "success", "failed", "other")]
	// Discord must not notify users of mentions in the text.
	return chatRequest{url: h.Secrets.Webhook, body: object{"embeds": []any{embed}, "allowed_mentions": object{"parse": []string{}}}}
}

// googleMessage: https://developers.google.com/workspace/chat/format-messages.
func googleMessage(h *Hook, _ *Delivery, m message) chatRequest {
	return chatRequest{url: h.Secrets.Webhook, body: object{"text": clip(googleMarkup.lines(append([]line{m.text}, m.detail...), "\n"), 4000)}}
}

// teamsMessage is an Adaptive Card, which incoming webhooks and workflows take:
// https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using.
func teamsMessage(h *Hook, _ *Delivery, m message) chatRequest {
	block := func(text string) object { return object{"type": "TextBlock", "text": text, "wrap": true} }
	body := []any{block(markdownMarkup(m.text))}
	if m.title != "" {
		title := block(markdownMarkup(say(link(m.link, m.title))))
		title["weight"], title["color"] = "Bolder", statusColor(m.status, "Default", "Good", "Attention", "Warning")
		body = append(body, title)
	}
	if len(m.detail) > 0 {
		body = append(body, block(markdownMarkup.lines(m.detail, "\n\n")))
	}
	return chatRequest{url: h.Secrets.Webhook, body: object{"type": "message", "summary": plainMarkup(m.text), "attachments": []any{object{
		"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil,
		"content": object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body},
	}}}}
}

// pumbleMessage: https://pumble.com/help/integrations/custom-apps/incoming-webhooks.
func pumbleMessage(h *Hook, _ *Delivery, m message) chatRequest {
	return chatRequest{url: h.Secrets.Webhook, body: object{"text": markdownMarkup.lines(append([]line{m.text}, m.detail...), "\n")}}
}

// webexMessage: https://apphub.webex.com/applications/incoming-webhooks-cisco-systems-38054-23307-75252.
func webexMessage(h *Hook, _ *Delivery, m message) chatRequest {
	return chatRequest{url: h.Secrets.Webhook, body: object{"markdown": clip(markdownMarkup.lines(append([]line{m.text}, m.detail...), "  \n"), 7000)}}
}

const (
	matrixHost   = "https://matrix-client.matrix.org"
	telegramHost = "https://api.telegram.org"
	pushoverURL  = "https://api.pushover.net/1/messages.json"
)

// matrixMessage: https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid.
// The key of the delivery is the transaction: a repeated message appears once.
func matrixMessage(h *Hook, d *Delivery, m message) chatRequest {
	all := append([]line{m.text}, m.detail...)
	return chatRequest{
		method: http.MethodPut,
		url: strings.TrimSuffix(cmp.Or(h.Property("hostname"), matrixHost), "/") + "/_matrix/client/v3/rooms/" + url.PathEscape(h.Property("room")) +
			"/send/m.room.message/" + url.PathEscape(d.Key),
		header: map[string]string{"Authorization": "Bearer " + h.Secrets.Token},
		body: object{
			"msgtype": "m.text", "body": plainMarkup.lines(all, "\n"), "format": "org.matrix.custom.html",
			"formatted_body": strings.ReplaceAll(htmlMarkup.lines(all, "\n"), "\n", "<br>"),
		},
	}
}

// telegramMessage: https://core.telegram.org/bots/api#sendmessage.
func telegramMessage(h *Hook, _ *Delivery, m message) chatRequest {
	out := object{"chat_id": h.Property("room"), "text": telegramText(m), "parse_mode": "HTML", "link_preview_options": object{"is_disabled": true}}
	if thread := h.Property("thread"); thread != "" {
		out["message_thread_id"] = json.Number(thread)
	}
	return chatRequest{url: strings.TrimSuffix(cmp.Or(h.Property("hostname"), telegramHost), "/") + "/bot" + url.PathEscape(h.Secrets.Token) + "/sendMessage", body: out}
}

// telegramText returns the lines of a message that fit into the limit of Telegram, which
// refuses longer texts and truncated HTML.
func telegramText(m message) string {
	const most = 4000
	text := htmlMarkup(m.text)
	for _, l := range m.detail {
		next := htmlMarkup(l)
		if len(text)+len(next) > most {
			return text + "\n…"
		}
		text += "\n" + next
	}
	return text
}

// pushoverMessage: https://pushover.net/api#messages.
func pushoverMessage(h *Hook, _ *Delivery, m message) chatRequest {
	out := object{
		"token": h.Secrets.Values["api_key"], "user": h.Secrets.Values["user_key"], "priority": json.Number(cmp.Or(h.Property("priority"), "0")),
		"title": clip(plainMarkup(m.text), 200), "message": cmp.Or(clip(plainMarkup.lines(m.detail, "\n"), 1000), clip(plainMarkup(m.text), 1000)),
	}
	for _, name := range []string{"device", "sound"} {
		if text := h.Property(name); text != "" {
			out[name] = text
		}
	}
	for _, s := range m.text {
		if s.url != "" {
			out["url"], out["url_title"] = s.url, clip(s.text, 100)
		}
	}
	return chatRequest{url: pushoverURL, body: out}
}
