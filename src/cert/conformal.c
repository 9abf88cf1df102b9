/* conformal.c - what held-out inputs say about inputs that are not there yet. e_1, ..., e_N: errors
 * of N inputs that neither model was made with; b: the largest of them but for k that are left out.
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
 * in its place. k and delta must not be chosen by looking at the errors: both are functions of N
 * alone (pare_left_out_count, PARE_CONFIDENCE).
 *
 * What makes it true. The error is a function of both models: an input that the input model was
 * trained on is no more like a new one than an input that the cut was fitted to; and a cut that was
 * chosen among several by these N inputs has seen them, also when it was only kept or thrown away.
 * The certificate therefore names the inputs that the cut was fitted to and how many candidates the
 * held-out inputs decided between (the writer's word), the verifier checks that no held-out input
 * is a fitted one and that there was one candidate, and what no file can show stands there as a
 * hypothesis, undecided. Windows of one text are not independent: nothing is said of them. What is
 * proven of the first tokens of the N does not bound a whole new input: it is cut as they are. */
#include "base/support.h"
#include "conformal.h"
#include "outputs.h"
#include "linalg/bounds.h"
#include <math.h>
#include <string.h>

size_t pare_draw_count(const pare_inputs *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) n += set->in[i].batch;
    return n;
}

bool pare_may_be_independent(const pare_inputs *set)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->in[i].continues) return false;
    return true;
}

size_t pare_left_out_count(size_t draws)
{
    const size_t k = (draws + 1) / PARE_ONE_IN;
    return k > 1 ? k - 1 : 0;
}

/* part / whole, rounded down. */
static double at_least(size_t part, size_t whole)
{
    const double v = (double)part / (double)whole;
    return fma(v, (double)whole, -(double)part) > 0 ? nextafter(v, 0) : v;
}

pare_claim pare_new_input(pare_kind kind, size_t draws, size_t left_out, double bound,
                          const char *domain)
{
    PARE_ASSERT(left_out < draws);
    return (pare_claim){.kind = kind,
                        .p = {(double)draws, (double)left_out},
                        .value = bound,
                        .probability = at_least(draws - left_out, draws + 1),
                        .domain = domain};
}

pare_claim pare_new_inputs(size_t draws, size_t left_out, const char *domain)
{
    PARE_ASSERT(left_out < draws);
    return (pare_claim){.kind = PARE_NEW_INPUTS_SHARE,
                        .p = {(double)draws, (double)left_out},
                        .value = pare_share_above(draws, left_out, PARE_CONFIDENCE),
                        .probability = PARE_CONFIDENCE,
                        .domain = domain};
}

/* ---- what they rest on ------------------------------------------------------------------------
 */

pare_status pare_heldout_check(const pare_data_ref *d, pare_arena *a, const pare_inputs *set,
                               pare_err *err)
{
    pare_input_hashes now;
    if (d->candidates == 0) return PARE_OK;
    if (d->fitted.tokens != d->heldout.tokens)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "data: fitted inputs are hashed by %zu tokens, held-out ones by %zu",
                         d->fitted.tokens, d->heldout.tokens);
    const pare_status st = pare_input_hashes_make(&now, a, set, d->heldout.tokens, err);
    if (st != PARE_OK) return st;
    bool same = now.n == d->heldout.n;
    for (size_t i = 0; same && i < now.n; i++)
        same = strcmp(now.sha256[i], d->heldout.sha256[i]) == 0;
    if (!same)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "data.heldout: the held-out inputs are not those of the certificate");
    if (pare_inputs_meet(&d->fitted, &now))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "data: a held-out input is one of those that the cut was fitted to");
    if (d->candidates != 1)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "data.writers_word.candidates: the held-out inputs decided between %zu "
                         "cuts: nothing follows for new ones",
                         d->candidates);
    if (!pare_may_be_independent(set))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "data: windows of one text are not independent draws: nothing follows "
                         "for new inputs");
    return PARE_OK;
}

static const char *domain_words(pare_arena *a, const pare_data_ref *d, size_t draws)
{
    char most[72] = "";
    if (strcmp(d->kind, "part") == 0 && d->tokens > 0)
        snprintf(most, sizeof most, ", cut to its first %zu tokens at most,", d->tokens);
    return pare_sprintf(a,
                        "an input drawn%s like the %zu held-out ones, which neither the training "
                        "of the model nor the cut has seen",
                        most, draws);
}

/* The largest figure of the rows of each input, or their mean. */
static void of_inputs(double *to, const pare_each_bound *each, const double *row, bool mean)
{
    for (size_t i = 0; i < each->inputs; i++) {
        const size_t begin = each->first[i], end = each->first[i + 1];
        pare_ub sum = {0}, most = {0};
        for (size_t k = begin; k < end; k++) {
            sum = pare_ub_add(sum, (pare_ub){row[k]});
            most = pare_ub_max(most, (pare_ub){row[k]});
        }
        to[i] = mean ? pare_ub_div(sum, (double)(end - begin)).v : most.v;
    }
}

/* One error of the inputs: its (k + 1)-th largest for every k that is left out; `headline` (nan: there is
 * none) bounds all of them as well. */
static pare_status add_error(pare_cert *cert, pare_arena *a, pare_kind kind, double *errors,
                             size_t n, double headline, const char *domain, pare_err *err)
{
    const size_t fewer = pare_left_out_count(n);
    pare_status st = PARE_OK;
    pare_sort_doubles(errors, n);
    for (size_t k = 0; st == PARE_OK && k <= fewer; k += fewer ? fewer : 1) {
        const bool all = k == 0 && !isnan(headline);
        const double bound = all ? headline : fmin(headline, errors[n - 1 - k]);
        st = pare_cert_add(cert, a, pare_new_input(kind, n, k, bound, domain), err);
        if (st == PARE_OK && kind == PARE_NEW_INPUT_OUTPUTS)
            st = pare_cert_add(cert, a, pare_new_inputs(n, k, domain), err);
    }
    return st;
}

pare_status pare_add_new_inputs(pare_cert *cert, pare_arena *a, const pare_data_ref *data,
                                const pare_inputs *set, const pare_each_bound *each, pare_err *err)
{
    const size_t n = pare_draw_count(set);
    if (data->candidates != 1 || !pare_may_be_independent(set) || n == 0) return PARE_OK;
    PARE_ASSERT(each && each->inputs == n);
    const char *const domain = domain_words(a, data, n);
    double *const errors = pare_alloc(a, n, sizeof *errors);
    if (!domain || !errors) return pare_no_memory(err);
    memcpy(errors, each->apart, n * sizeof *errors);
    pare_status st =
        add_error(cert, a, PARE_NEW_INPUT_OUTPUTS, errors, n, cert->proven, domain, err);
    if (st == PARE_OK && each->distance) {
        of_inputs(errors, each, each->distance, false);
        st = add_error(cert, a, PARE_NEW_INPUT_COSINE_DISTANCE, errors, n, NAN, domain, err);
    }
    if (st == PARE_OK && each->kl) {
        of_inputs(errors, each, each->kl, true);
        st = add_error(cert, a, PARE_NEW_INPUT_KL, errors, n, NAN, domain, err);
    }
    if (st != PARE_OK) return st;
    return pare_cert_add(
        cert, a, (pare_claim){.kind = PARE_NEW_INPUT_INDEPENDENT, .holds = PARE_UNKNOWN}, err);
}
