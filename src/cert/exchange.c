/* Inputs that are not there yet (spec, 5.5 and 8.5). e_1, ..., e_N: errors of N inputs that neither
 * model was made with; b: the largest of them but for k that are left out.
 *
 * One more input. If the N and a new one are exchangeable (independent draws of one source, say),
 *     P( e > b ) <= (k + 1) / (N + 1),   over the draw of all N + 1.
 * Proof. Call an input of the N + 1 high if at most k + 1 of them, itself included, have an error
 * as large as its own. If e > b at most k of the others do, so the new input is high. There are
 * never more than k + 1 high ones: of k + 2, the one with the least error would have k + 2 at least
 * as large. Each of the N + 1 is high equally often: at most (k + 1) / (N + 1). []
 *
 * All of them. If the N are independent draws of one source, T(p) = P(at most k of N tries succeed)
 * and T(p) <= delta, then
 *     P( the share of the source above b is more than p ) <= delta,   over the draw of the N.
 * Proof. Let p < 1, G(t) be the share above t, and t* the least t with G(t) <= p: there is one, as
 * G falls from 1 to 0 and is continuous from the right. If G(b) > p then b < t*, so at most k of
 * the N are t* or more. The share of those is at least p, as G > p below t*; and T falls: at most k
 * of N happens with probability at most T(p). []
 *
 * Neither asks anything of the distribution; equal errors make both smaller. What is proven of each
 * of the N is at least its error, so that the (k + 1)-th largest of these is at least b, and stands
 * in its place. The error is a function of both models: an input that the input model was trained
 * on is no more like a new one than an input that the cut was fitted to. That neither has seen them
 * cannot be read off the files: the certificate names it as a hypothesis, undecided. Windows of one
 * text are not independent: nothing is said of them. What is proven of the first tokens of the N
 * says nothing of a whole new input: it is cut as they are. */
#include <pare/ball.h>
#include <pare/exchange.h>
#include <pare/publish.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

#define CONFIDENCE ", confidence "
#define LEFT_OUT   ", largest errors left out: "

const char *pare_new_input_name(pare_arena *a, pare_new_input what)
{
    char sure[64] = "", left[64] = "";
    if (what.confidence > 0) {
        memcpy(sure, CONFIDENCE, sizeof CONFIDENCE);
        pare_ball_text(sure + strlen(CONFIDENCE), what.confidence);
    }
    if (what.left_out > 0) snprintf(left, sizeof left, LEFT_OUT "%zu", what.left_out);
    return pare_sprintf(a, "%s%s%s", what.confidence > 0 ? PARE_NEW_SHARE : PARE_NEW_INPUT, sure,
                        left);
}

/* Whether *at begins so; then it is behind that. */
static bool skip(const char **at, const char *words)
{
    const size_t n = strlen(words);
    if (strncmp(*at, words, n) != 0) return false;
    *at += n;
    return true;
}

bool pare_new_input_read(pare_new_input *what, const char *name)
{
    char *end = NULL;
    *what = (pare_new_input){0, 0};
    if (!name) return false;
    if (skip(&name, PARE_NEW_SHARE CONFIDENCE)) {
        what->confidence = strtod(name, &end);
        if (end == name || !(what->confidence >= 0.5 && what->confidence < 1)) return false;
        name = end;
    } else if (!skip(&name, PARE_NEW_INPUT)) {
        return false;
    }
    if (!*name) return true;
    if (!skip(&name, LEFT_OUT) || *name < '1' || *name > '9') return false;
    what->left_out = strtoull(name, &end, 10);
    return !*end;
}

/* ---- one statement --------------------------------------------------------------------------- */

size_t pare_draws(const pare_inputs *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) n += set->in[i].batch;
    return n;
}

bool pare_may_be_draws(const pare_inputs *set)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->in[i].continues) return false;
    return true;
}

/* part / whole, rounded down. */
static double at_least(size_t part, size_t whole)
{
    const double v = (double)part / (double)whole;
    return fma(v, (double)whole, -(double)part) > 0 ? nextafter(v, 0) : v;
}

pare_statement pare_exchangeable(pare_arena *a, pare_new_input what, size_t draws,
                                 const pare_data_ref *data, double bound)
{
    char most[72] = "";
    PARE_ASSERT(what.left_out < draws);
    if (strcmp(data->kind, "part") == 0 && data->tokens > 0)
        snprintf(most, sizeof most, ", and cut to %s first %zu tokens at most,",
                 what.confidence > 0 ? "their" : "its", data->tokens);
    const char *const name = pare_new_input_name(a, what);
    const char *const domain =
        pare_sprintf(a,
                     "%s drawn%s like the %zu of the data that neither the training of the model "
                     "nor the cut has seen",
                     what.confidence > 0 ? "all inputs" : "one more input", most, draws);
    if (!name || !domain) return (pare_statement){0};
    if (what.confidence > 0)
        return (pare_statement){name, "share of the inputs of the source", domain, what.confidence,
                                pare_share_above(draws, what.left_out, what.confidence)};
    return (pare_statement){name, PARE_NORM_HEADLINE, domain,
                            at_least(draws - what.left_out, draws + 1), bound};
}

/* ---- those of a certificate ------------------------------------------------------------------ */

/* The errors of the draws, each proven for itself, the largest first; made when first asked for. */
typedef struct errors {
    double *v;
    size_t n;
} errors;

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static pare_status look(errors *e, pare_arena *scratch, const pare_model *f, const pare_model *g,
                        const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    if (e->v) return PARE_OK;
    e->v = pare_alloc(scratch, e->n, sizeof *e->v);
    if (!e->v) return pare_no_memory(err);
    const pare_status st = pare_prove_each(e->v, f, g, set, exec, err);
    if (!st) qsort(e->v, e->n, sizeof *e->v, falling);
    return st;
}

pare_status pare_exchange_say(pare_cert *cert, pare_arena *keep, const pare_data_ref *data,
                              const pare_statement *asked, size_t nasked, const pare_model *f,
                              const pare_model *g, const pare_inputs *set, const pare_exec *exec,
                              pare_err *err)
{
    errors e = {NULL, pare_draws(set)};
    pare_status st = PARE_OK;
    bool any = false;
    if (!pare_may_be_draws(set)) return PARE_OK;
    for (size_t i = 0; !st && i < nasked; i++) {
        pare_new_input what;
        double bound = cert->proven;
        if (!pare_new_input_read(&what, asked[i].name) || what.left_out >= e.n) continue;
        if (what.left_out > 0 && what.confidence == 0) {
            st = look(&e, keep, f, g, set, exec, err);
            if (!st) bound = fmin(bound, e.v[what.left_out]);
        }
        if (st) return st;
        const pare_statement s = pare_exchangeable(keep, what, e.n, data, bound);
        if (!s.name) return pare_no_memory(err);
        cert->statements[cert->nstatements++] = s;
        any = true;
    }
    if (any)
        cert->hypotheses[cert->nhypotheses++] =
            (pare_hypothesis){PARE_NEW_INPUT_UNSEEN, PARE_UNKNOWN, NAN, NAN};
    return st;
}
