/* What `pare run --text` does with a language model: it goes on, token by token. */
#include "out.h"
#include "run.h"

#include <string.h>

/* ---- text as it comes ------------------------------------------------------------------------ */

/* Tokens may end within a character: its bytes are held back until it is whole. What is no UTF-8,
 * and control characters that could play with the terminal, become U+FFFD. */
typedef struct text_out {
    cli *c;
    bool show; /* on stdout; otherwise only kept */
    unsigned char held[4];
    size_t nheld;
    char *all;
    size_t n, room;
    bool failed;
} text_out;

static void emit(text_out *t, const char *s, size_t n)
{
    if (t->room - t->n < n + 1) {
        const size_t room = 2 * t->room + n + 256;
        char *const more = pare_alloc(t->c->arena, room, 1);
        if (!more) {
            t->failed = true;
            return;
        }
        if (t->n) memcpy(more, t->all, t->n);
        t->all = more;
        t->room = room;
    }
    memcpy(t->all + t->n, s, n);
    t->n += n;
    t->all[t->n] = '\0';
    if (t->show) fwrite(s, 1, n, stdout);
}

static bool harmless(const unsigned char *p, size_t n)
{
    if (n == 1) return p[0] >= 0x20 ? p[0] != 0x7F : p[0] == '\n' || p[0] == '\t';
    return !(n == 2 && p[0] == 0xC2 && p[1] < 0xA0);
}

/* Could more bytes make a character of these? */
static bool unfinished(const unsigned char *p, size_t n)
{
    const size_t want = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || n >= want) return false;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return false;
    return true;
}

/* Gives out what is decided; at the end everything is. */
static void settle(text_out *t, bool end)
{
    while (t->nheld) {
        size_t n = out_utf8_length(t->held, t->nheld);
        if (n == 0 && !end && unfinished(t->held, t->nheld)) return;
        if (n && harmless(t->held, n))
            emit(t, (const char *)t->held, n);
        else
            emit(t, "\xEF\xBF\xBD", 3);
        if (n == 0) n = 1;
        t->nheld -= n;
        memmove(t->held, t->held + n, t->nheld);
    }
}

static void put(text_out *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->held[t->nheld++] = (unsigned char)s[i];
        settle(t, false);
    }
}

/* ---- one text -------------------------------------------------------------------------------- */

typedef struct story {
    pare_input prompt;
    int64_t *ids; /* generated */
    size_t n;
    const char *stop;        /* "tokens", "end" or "context" */
    const char *first, *all; /* the prompt as printed, and what was made of it */
} story;

typedef struct writer {
    cli *c;
    run_state *s;
    pare_decoder *d;
    size_t tokens;
    double read, write; /* seconds */
    size_t nread, nwritten;
} writer;

/* Words have no blanks of their own. */
static void put_token(writer *w, text_out *t, int64_t previous, int64_t id)
{
    size_t bytes;
    const char *const s = pare_decode(w->s->tok, previous, id, &bytes);
    if (w->s->m->tokenizer == PARE_TOK_WORDS && previous >= 0) put(t, " ", 1);
    put(t, s, bytes);
}

static pare_status go_on(writer *w, story *y, text_out *t, const float *logits)
{
    pare_sampler sampler;
    pare_err *const err = &w->c->err;
    /* Every text from the start of the stream: what becomes of it does not depend on the others. */
    pare_status st = pare_sampler_new(&sampler, w->c->arena, pare_model_outputs(w->s->m),
                                      &w->s->o->sample, w->c->seed, 0, err);
    int64_t last = y->prompt.ids[y->prompt.tokens - 1];
    while (!st) {
        int64_t id;
        if ((st = pare_sample(&id, &sampler, logits, err))) break;
        if (pare_ends_text(w->s->tok, id)) {
            y->stop = "end";
            break;
        }
        y->ids[y->n++] = id;
        put_token(w, t, last, id);
        if (t->show) fflush(stdout);
        last = id;
        y->stop = y->n == w->tokens ? "tokens" : "context";
        if (y->n == w->tokens || pare_decoder_tokens(w->d) == pare_decoder_room(w->d)) break;
        st = pare_decoder_step(w->d, id, &logits, err);
    }
    settle(t, true);
    return st;
}

static pare_status tell(writer *w, story *y)
{
    text_out prompt = {.c = w->c, .show = !w->c->json}, text = prompt;
    const float *logits;
    const size_t room = pare_decoder_room(w->d) - y->prompt.tokens + 1;
    y->ids = pare_alloc(w->c->arena, room < w->tokens ? room : w->tokens, sizeof *y->ids);
    if (!y->ids) return pare_no_memory(&w->c->err);
    for (size_t i = 0; i < y->prompt.tokens; i++)
        put_token(w, &prompt, i ? y->prompt.ids[i - 1] : -1, y->prompt.ids[i]);
    settle(&prompt, true);
    pare_decoder_reset(w->d);
    const double start = pare_seconds();
    pare_status st = pare_decoder_feed(w->d, y->prompt.ids, y->prompt.tokens, &logits, &w->c->err);
    const double read = pare_seconds();
    if (!st) st = go_on(w, y, &text, logits);
    w->read += read - start;
    w->write += pare_seconds() - read;
    w->nread += y->prompt.tokens;
    w->nwritten += y->n;
    if (!w->c->json) putchar('\n');
    if (!st && (prompt.failed || text.failed)) st = pare_no_memory(&w->c->err);
    y->first = prompt.all ? prompt.all : "";
    y->all = text.all ? text.all : "";
    return st;
}

/* ---- all texts ------------------------------------------------------------------------------- */

/* The lines of a file, but for empty ones, as a list of texts. */
static pare_status read_prompts(cli *c, const char *path, const char ***out, size_t *n)
{
    char *text = NULL;
    size_t bytes = 0, lines = 1;
    const pare_status st = pare_text_read(&text, &bytes, c->arena, path, &c->err);
    if (st) return cli_name(c, st, path);
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    *out = pare_alloc(c->arena, lines, sizeof **out);
    if (!*out) return pare_no_memory(&c->err);
    *n = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        line[strcspn(line, "\r")] = '\0';
        if (*line) (*out)[(*n)++] = line;
    }
    if (*n == 0) return pare_fail(&c->err, PARE_ERR_INPUT, "%s: holds no text", path);
    return PARE_OK;
}

static pare_status encode_all(cli *c, run_state *s, story **out, size_t *n)
{
    const char *const *text = s->o->texts.v;
    *n = s->o->texts.n;
    if (s->o->prompts) {
        const char **lines = NULL;
        const pare_status st = read_prompts(c, s->o->prompts, &lines, n);
        if (st) return st;
        text = lines;
    }
    story *const y = pare_alloc(c->arena, *n, sizeof *y);
    if (!y) return pare_no_memory(&c->err);
    *out = y;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < *n && !st; i++) st = run_encode(c, s, text[i], &y[i].prompt);
    return st;
}

/* Tokens the longest text may come to, within the context. */
static size_t room_for(const pare_model *m, const story *y, size_t n, size_t tokens)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        if (y[i].prompt.tokens + tokens > most) most = y[i].prompt.tokens + tokens;
    return m->context && most > m->context ? m->context : most;
}

static double per_second(size_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static bool json_ids(cJSON *to, const char *key, const int64_t *ids, size_t n)
{
    cJSON *const list = pare_json_add_array(to, key);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = pare_json_add_size(list, NULL, (size_t)ids[i]);
    return ok;
}

static bool json_story(cJSON *list, const story *y)
{
    cJSON *const o = pare_json_add_object(list, NULL);
    return o && pare_json_add_string(o, "prompt", y->first) &&
           pare_json_add_string(o, "text", y->all) &&
           json_ids(o, "prompt_ids", y->prompt.ids, y->prompt.tokens) &&
           json_ids(o, "ids", y->ids, y->n) && pare_json_add_string(o, "stop", y->stop);
}

static pare_status print_json(writer *w, const story *y, size_t n)
{
    cli *const c = w->c;
    facts f;
    const pare_status st = cli_facts(c, &f, c->operand[0], w->s->m, NULL, true);
    if (st) return st;
    cJSON *const root = out_json_begin(c);
    bool ok = root && out_json_facts(root, "input", &f);
    cJSON *const list = ok ? pare_json_add_array(root, "texts") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = json_story(list, &y[i]);
    cJSON *const rate = ok ? pare_json_add_object(root, "tokens_per_second") : NULL;
    ok = rate && pare_json_add_number(rate, "prompt", per_second(w->nread, w->read)) &&
         pare_json_add_number(rate, "generation", per_second(w->nwritten, w->write));
    cJSON *const time = ok ? pare_json_add_object(root, "time_ms") : NULL;
    ok = time && pare_json_add_number(time, "prompt", 1e3 * w->read) &&
         pare_json_add_number(time, "generation", 1e3 * w->write);
    return out_json(c, root, ok);
}

static void note_rates(writer *w)
{
    char a[32], b[32], m[32], n[32];
    cli_note(w->c, "prompt %s tokens, %s tokens/s; generated %s tokens, %s tokens/s",
             out_count(a, w->nread), out_count(m, (uint64_t)per_second(w->nread, w->read)),
             out_count(b, w->nwritten), out_count(n, (uint64_t)per_second(w->nwritten, w->write)));
}

static pare_status tell_all(writer *w, story *y, size_t n)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) {
        if (i && !w->c->json) putchar('\n');
        st = tell(w, &y[i]);
        fflush(stdout);
        if (!st && strcmp(y[i].stop, "context") == 0)
            cli_note(w->c, "stopped: the context of %zu tokens is full", w->s->m->context);
        if (ferror(stdout)) return st; /* which the end of the program reports */
    }
    if (st) return st;
    note_rates(w);
    return w->c->json ? print_json(w, y, n) : PARE_OK;
}

const char *run_cannot_generate(const pare_model *m)
{
    const char *const why = pare_decoder_refuses(m);
    if (why) return why;
    return pare_model_outputs(m) == m->stem.vocab ? NULL : "its outputs are not its vocabulary";
}

pare_status run_generate(cli *c, run_state *s)
{
    writer w = {.c = c, .s = s};
    story *y = NULL;
    size_t n = 0;
    w.tokens = s->o->tokens == RUN_NOT_GIVEN ? RUN_TOKENS : s->o->tokens;
    pare_status st = encode_all(c, s, &y, &n);
    if (!st) st = pare_decoder_new(&w.d, s->m, room_for(s->m, y, n, w.tokens), &c->exec, &c->err);
    if (!st) st = tell_all(&w, y, n);
    pare_decoder_free(w.d);
    return st;
}
