/* run_generate.c - pare run --text and --prompts: generated text on stdout as it comes. Only the
 * first text that is not complete is shown while it is generated; the others follow in order. */
#include "out.h"
#include "run.h"
#include "text_out.h"
#include "warn_text.h"

#include <string.h>

/* One text on its way to stdout. */
typedef struct text_shown {
    text_out prompt, text; /* the prompt as printed, and what was generated */
    const char *stop;      /* "tokens", "end" or "context"; NULL: it is not complete */
    bool open;             /* its first line has begun */
} text_shown;

typedef struct generation {
    cli *c;
    run_state *s;
    pare_input *prompts;
    pare_generation result;
    text_shown *shown;
    size_t n, begun, complete; /* texts in all, begun, and shown to their end */
} generation;

/* ---- what happens ---------------------------------------------------------------------------- */

/* Words have no blanks of their own. */
static void put_token(const generation *g, text_out *t, int64_t previous, int64_t id)
{
    size_t bytes;
    const char *const s = pare_decode(g->s->tok, previous, id, &bytes);
    if (g->s->m->tokenizer == PARE_TOK_WORDS && previous >= 0) text_put(t, g->c, " ", 1);
    text_put(t, g->c, s, bytes);
}

static void on_begin(void *self, size_t i)
{
    generation *const g = self;
    const pare_input *const p = &g->prompts[i];
    g->begun = i + 1;
    for (size_t k = 0; k < p->tokens; k++)
        put_token(g, &g->shown[i].prompt, k ? p->ids[k - 1] : -1, p->ids[k]);
    text_end(&g->shown[i].prompt, g->c);
}

static void on_token(void *self, size_t i, int64_t id)
{
    generation *const g = self;
    const pare_input *const p = &g->prompts[i];
    const pare_generated *const y = &g->result.each[i]; /* id is its last */
    put_token(g, &g->shown[i].text, y->n > 1 ? y->ids[y->n - 2] : p->ids[p->tokens - 1], id);
}

static void on_end(void *self, size_t i, pare_generate_end why)
{
    static const char *const words[] = {
        [PARE_END_TOKENS] = "tokens", [PARE_END_TEXT] = "end", [PARE_END_CONTEXT] = "context"};
    generation *const g = self;
    g->shown[i].stop = words[why];
    text_end(&g->shown[i].text, g->c);
}

/* Prints what has come since the last time, in order; `last`: a text that broke off ends its line
 * too. */
static void print_new(generation *g, bool last)
{
    const bool print = !g->c->json;
    for (; g->complete < g->begun; g->complete++) {
        text_shown *const y = &g->shown[g->complete];
        if (print && g->complete && !y->open) putchar('\n');
        y->open = true;
        if (print) text_show(&y->prompt);
        if (print) text_show(&y->text);
        if (!y->stop && !last) break;
        if (print) putchar('\n');
        if (y->stop && strcmp(y->stop, "context") == 0)
            cli_note(g->c, "stopped after %zu tokens: the context of the model is full",
                     g->s->m->context);
        if (last && !y->stop) break;
    }
    if (print) fflush(stdout);
}

static bool on_round(void *self)
{
    print_new(self, false);
    return !ferror(stdout); /* which the end of the program reports */
}

/* ---- prompts --------------------------------------------------------------------------------- */

/* The texts of the command line, or the lines of a file but for empty ones. */
static pare_status encode_prompts(generation *g)
{
    cli *const c = g->c;
    run_state *const s = g->s;
    const char *const path = s->o->prompts, *const *texts = s->o->texts.v;
    pare_status st = PARE_OK;
    g->n = s->o->texts.n;
    if (path) {
        char *text = NULL;
        size_t bytes = 0, lines = 1;
        st = cli_name(c, pare_text_read(&text, &bytes, c->arena, path, &c->err), path);
        if (st) return st;
        pare_text_note_utf8(&s->notes, text, bytes);
        for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
        const char **const list = pare_alloc(c->arena, lines, sizeof *list);
        if (!list) return pare_no_memory(&c->err);
        g->n = 0;
        for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
            line[strcspn(line, "\r")] = '\0';
            if (*line) list[g->n++] = line;
        }
        if (g->n == 0) return pare_fail(&c->err, PARE_ERR_INPUT, "%s: holds no text", path);
        texts = list;
    }
    g->prompts = pare_alloc(c->arena, g->n, sizeof *g->prompts);
    g->shown = pare_alloc(c->arena, g->n, sizeof *g->shown);
    if (!g->prompts || !g->shown) return pare_no_memory(&c->err);
    for (size_t i = 0; i < g->n && !st; i++) st = run_encode(c, s, texts[i], &g->prompts[i]);
    if (!st && path) warn_text(c, path, &s->notes);
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

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

static pare_status print_json(const generation *g)
{
    cli *const c = g->c;
    const pare_generate_stats *const t = &g->result.stats;
    facts f;
    const pare_status st = cli_facts(c, &f, c->operand[0], g->s->m, NULL, true);
    if (st) return st;
    cJSON *const root = out_json_begin(c);
    bool ok = root && out_json_facts(root, "input", &f);
    cJSON *const list = ok ? pare_json_add_array(root, "texts") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < g->n; i++) {
        const text_shown *const y = &g->shown[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = out_json_add(o, "prompt:s text:s", y->prompt.all ? y->prompt.all : "",
                          y->text.all ? y->text.all : "") &&
             json_ids(o, "prompt_ids", g->prompts[i].ids, g->prompts[i].tokens) &&
             json_ids(o, "ids", g->result.each[i].ids, g->result.each[i].n) &&
             out_json_add(o, "stop:s", y->stop);
    }
    return out_json(c, root,
                    ok &&
                        out_json_add_object(root, "tokens_per_second", "prompt:g generation:g",
                                            per_second(t->prompt_tokens, t->prompt_seconds),
                                            per_second(t->tokens, t->seconds)) &&
                        out_json_add_object(root, "time_ms", "prompt:g generation:g",
                                            1e3 * t->prompt_seconds, 1e3 * t->seconds));
}

pare_status run_generate(cli *c, run_state *s)
{
    generation g = {.c = c, .s = s};
    const pare_generate_stats *const t = &g.result.stats;
    pare_status st = encode_prompts(&g);
    if (st) return st;
    const pare_generate_opts o = {.tokenizer = s->tok,
                                  .tokens =
                                      s->o->tokens == RUN_NOT_GIVEN ? RUN_TOKENS : s->o->tokens,
                                  .sample = s->o->sample,
                                  .seed = c->seed,
                                  .events = {&g, on_begin, on_token, on_end, on_round}};
    const pare_inputs prompts = {g.n, g.prompts};
    st = pare_generate(&g.result, c->arena, s->m, &prompts, &o, &c->exec, &c->err);
    print_new(&g, st != PARE_OK);
    for (size_t i = 0; i < g.begun && !st; i++)
        if (g.shown[i].prompt.failed || g.shown[i].text.failed) st = pare_no_memory(&c->err);
    if (st || ferror(stdout)) return st;
    char a[32], b[32], p[32], n[32];
    cli_note(c, "prompt %s tokens, %s tokens/s; generated %s tokens, %s tokens/s",
             out_count(a, t->prompt_tokens),
             out_count(p, (uint64_t)per_second(t->prompt_tokens, t->prompt_seconds)),
             out_count(b, t->tokens), out_count(n, (uint64_t)per_second(t->tokens, t->seconds)));
    return c->json ? print_json(&g) : PARE_OK;
}
