/* What `pare run --text` does with a language model: it continues the text, token by token.
 *
 * Several texts go on together: a token of each in one pass over the weights, which costs little
 * more than a token of one. They come out in their order, the first of them as it is written, the
 * others when those before them are complete. A text does not depend on the others (decode.h), nor
 * on how many go together. */
#include "out.h"
#include "run.h"
#include "warn_text.h"
#include "text_out.h"

#include <string.h>

enum { TOGETHER = 24 };              /* texts, at most: two tall tiles of the products */
#define MOST_CACHE ((size_t)1 << 28) /* floats of keys and values, unless one text needs more */

typedef struct story {
    pare_input prompt;
    int64_t *ids; /* generated */
    size_t n;
    const char *stop;     /* "tokens", "end" or "context"; NULL: it goes on */
    text_out first, text; /* the prompt as printed, and what was made of it */
    pare_sampler sampler;
    bool open; /* its first line has begun */
} story;

typedef struct writer {
    cli *c;
    run_state *s;
    pare_decoder *d;
    story *y; /* all texts */
    size_t n, begun, shown;
    story *at[TOGETHER]; /* those that go on now, by their number in the decoder; NULL: free */
    size_t together;
    size_t tokens;
    pare_sampler sampler;
    double read, write; /* seconds */
    size_t nread, nwritten;
} writer;

/* ---- one text -------------------------------------------------------------------------------- */

/* Words have no blanks of their own. */
static void put_token(const writer *w, text_out *t, int64_t previous, int64_t id)
{
    size_t bytes;
    const char *const s = pare_decode(w->s->tok, previous, id, &bytes);
    if (w->s->m->tokenizer == PARE_TOK_WORDS && previous >= 0) text_put(t, w->c, " ", 1);
    text_put(t, w->c, s, bytes);
}

/* Chooses what follows, and whether anything will follow that. */
static pare_status choose(writer *w, size_t slot, const float *logits)
{
    story *const y = w->at[slot];
    int64_t id;
    const pare_status st = pare_sample(&id, &y->sampler, logits, &w->c->err);
    if (st) return st;
    if (pare_ends_text(w->s->tok, id)) {
        y->stop = "end";
    } else {
        put_token(w, &y->text, y->n ? y->ids[y->n - 1] : y->prompt.ids[y->prompt.tokens - 1], id);
        y->ids[y->n++] = id;
        w->nwritten++;
        if (y->n == w->tokens)
            y->stop = "tokens";
        else if (pare_decoder_tokens_of(w->d, slot) == pare_decoder_room(w->d))
            y->stop = "context";
    }
    if (!y->stop) return PARE_OK;
    text_end(&y->text, w->c);
    w->at[slot] = NULL;
    return PARE_OK;
}

/* The next text takes a free place, is read, and gets its first token. */
static pare_status begin(writer *w, size_t slot)
{
    story *const y = w->at[slot] = &w->y[w->begun++];
    const pare_input *const p = &y->prompt;
    const float *logits;
    const size_t room = pare_decoder_room(w->d) - p->tokens + 1;
    y->ids = pare_alloc(w->c->arena, room < w->tokens ? room : w->tokens, sizeof *y->ids);
    if (!y->ids) return pare_no_memory(&w->c->err);
    y->sampler = w->sampler; /* from the start of the stream; the working memory is shared */
    for (size_t i = 0; i < p->tokens; i++)
        put_token(w, &y->first, i ? p->ids[i - 1] : -1, p->ids[i]);
    text_end(&y->first, w->c);
    pare_decoder_reset_text(w->d, slot);
    const double start = pare_seconds();
    const pare_status st =
        pare_decoder_feed_text(w->d, slot, p->ids, p->tokens, &logits, &w->c->err);
    w->read += pare_seconds() - start;
    w->nread += p->tokens;
    return st ? st : choose(w, slot, logits);
}

/* ---- all texts ------------------------------------------------------------------------------- */

/* Every text at work takes the token that was chosen, and chooses again; *n: how many there are. */
static pare_status step(writer *w, size_t *n)
{
    size_t slot[TOGETHER], ld = 0;
    int64_t id[TOGETHER];
    const float *logits = NULL;
    *n = 0;
    for (size_t i = 0; i < w->together; i++) {
        if (!w->at[i]) continue;
        slot[*n] = i;
        id[(*n)++] = w->at[i]->ids[w->at[i]->n - 1];
    }
    if (*n == 0) return PARE_OK;
    pare_status st = pare_decoder_step_texts(w->d, slot, id, *n, &logits, &ld, &w->c->err);
    for (size_t i = 0; i < *n && !st; i++) st = choose(w, slot[i], logits + i * ld);
    return st;
}

/* What has come since the last time, in order; `last`: a text that broke off ends its line too. */
static void show(writer *w, bool last)
{
    const bool print = !w->c->json;
    for (; w->shown < w->begun; w->shown++) {
        story *const y = &w->y[w->shown];
        if (print && w->shown && !y->open) putchar('\n');
        y->open = true;
        if (print) text_show(&y->first);
        if (print) text_show(&y->text);
        if (!y->stop && !last) break;
        if (print) putchar('\n');
        if (y->stop && strcmp(y->stop, "context") == 0)
            cli_note(w->c, "stopped after %zu tokens: the context of the model is full",
                     w->s->m->context);
        if (last && !y->stop) break;
    }
    if (print) fflush(stdout);
}

static pare_status tell_all(writer *w)
{
    pare_status st = PARE_OK;
    size_t working = 1;
    const double start = pare_seconds();
    while (!st && working && !ferror(stdout)) { /* which the end of the program reports */
        st = pare_stopped(&w->c->exec, &w->c->err);
        for (size_t i = 0; i < w->together && !st; i++)
            while (!st && !w->at[i] && w->begun < w->n) st = begin(w, i);
        show(w, false);
        if (!st) st = step(w, &working);
    }
    show(w, st != PARE_OK);
    w->write = pare_seconds() - start - w->read;
    for (size_t i = 0; i < w->begun && !st; i++)
        if (w->y[i].first.failed || w->y[i].text.failed) st = pare_no_memory(&w->c->err);
    return st;
}

/* ---- around it ------------------------------------------------------------------------------- */

/* The lines of a file, but for empty ones, as a list of texts. */
static pare_status read_prompts(cli *c, run_state *s, const char *path, const char ***out,
                                size_t *n)
{
    char *text = NULL;
    size_t bytes = 0, lines = 1;
    const pare_status st = pare_text_read(&text, &bytes, c->arena, path, &c->err);
    if (st) return cli_name(c, st, path);
    pare_text_note_utf8(&s->notes, text, bytes);
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
        const pare_status st = read_prompts(c, s, s->o->prompts, &lines, n);
        if (st) return st;
        text = lines;
    }
    story *const y = pare_alloc(c->arena, *n, sizeof *y);
    if (!y) return pare_no_memory(&c->err);
    *out = y;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < *n && !st; i++) st = run_encode(c, s, text[i], &y[i].prompt);
    if (!st && s->o->prompts) warn_text(c, s->o->prompts, &s->notes);
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
    return o && pare_json_add_string(o, "prompt", y->first.all ? y->first.all : "") &&
           pare_json_add_string(o, "text", y->text.all ? y->text.all : "") &&
           json_ids(o, "prompt_ids", y->prompt.ids, y->prompt.tokens) &&
           json_ids(o, "ids", y->ids, y->n) && pare_json_add_string(o, "stop", y->stop);
}

static pare_status print_json(const writer *w)
{
    cli *const c = w->c;
    facts f;
    const pare_status st = cli_facts(c, &f, c->operand[0], w->s->m, NULL, true);
    if (st) return st;
    cJSON *const root = out_json_begin(c);
    bool ok = root && out_json_facts(root, "input", &f);
    cJSON *const list = ok ? pare_json_add_array(root, "texts") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < w->n; i++) ok = json_story(list, &w->y[i]);
    cJSON *const rate = ok ? pare_json_add_object(root, "tokens_per_second") : NULL;
    ok = rate && pare_json_add_number(rate, "prompt", per_second(w->nread, w->read)) &&
         pare_json_add_number(rate, "generation", per_second(w->nwritten, w->write));
    cJSON *const time = ok ? pare_json_add_object(root, "time_ms") : NULL;
    ok = time && pare_json_add_number(time, "prompt", 1e3 * w->read) &&
         pare_json_add_number(time, "generation", 1e3 * w->write);
    return out_json(c, root, ok);
}

static void note_rates(const writer *w)
{
    char a[32], b[32], m[32], n[32];
    cli_note(w->c, "prompt %s tokens, %s tokens/s; generated %s tokens, %s tokens/s",
             out_count(a, w->nread), out_count(m, (uint64_t)per_second(w->nread, w->read)),
             out_count(b, w->nwritten), out_count(n, (uint64_t)per_second(w->nwritten, w->write)));
}

const char *run_cannot_generate(const pare_model *m)
{
    const char *const why = pare_decoder_refuses(m);
    if (why) return why;
    return pare_model_outputs(m) == m->stem.vocab ? NULL : "its outputs are not its vocabulary";
}

/* Texts whose keys and values are held at once. */
static size_t together(const pare_model *m, size_t n, size_t room)
{
    size_t cache = 1;
    for (size_t b = 0; b < m->nblocks; b++)
        cache += (m->blocks[b].attn.wk.rows + m->blocks[b].attn.wv.rows) * room;
    const size_t most = MOST_CACHE / cache < TOGETHER ? MOST_CACHE / cache : TOGETHER;
    return n < most ? n : most ? most : 1;
}

pare_status run_generate(cli *c, run_state *s)
{
    writer w = {.c = c, .s = s};
    pare_status st = encode_all(c, s, &w.y, &w.n);
    w.tokens = s->o->tokens == RUN_NOT_GIVEN ? RUN_TOKENS : s->o->tokens;
    if (st) return st;
    const size_t room = room_for(s->m, w.y, w.n, w.tokens);
    w.together = together(s->m, w.n, room);
    st = pare_sampler_new(&w.sampler, c->arena, pare_model_outputs(s->m), &s->o->sample, c->seed, 0,
                          &c->err);
    if (!st) st = pare_decoder_new_texts(&w.d, s->m, w.together, room, &c->exec, &c->err);
    if (!st) st = tell_all(&w);
    pare_decoder_free(w.d);
    if (st || ferror(stdout)) return st;
    note_rates(&w);
    return c->json ? print_json(&w) : PARE_OK;
}
