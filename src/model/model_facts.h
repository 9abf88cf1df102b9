/* model_facts.h - facts about a model that only the library's own modules ask for. */
#ifndef PARE_MODEL_MODEL_FACTS_H
#define PARE_MODEL_MODEL_FACTS_H
#include <pare/model.h>

/* ---- making and walking ---------------------------------------------------------------------- */

/* Lets go of the memory of the models that m was cloned from: for who has replaced all its
 * weights. */
void pare_model_unshare(pare_model *m);
/* Width of the residual stream where block b begins (b = nblocks: at the head). */
bool pare_model_is_rotary(const pare_model *m); /* positions turn queries and keys */

/* The last map, tied to the embedding or not; it may be absent. */
static inline const pare_weight *pare_head_weight(const pare_model *m)
{
    return m->head.tied ? &m->embedding.table : &m->head.out.w;
}

/* What `normalize` of the head does, as a norm: y / |y|_2 is an rms norm with divisor 1 and
 * without eps. Kind NONE where the head does not normalize. */
static inline pare_norm pare_head_unit_norm(const pare_model *m)
{
    return (pare_norm){.kind = m->head.normalize ? PARE_NORM_RMS : PARE_NORM_NONE, .divisor = 1};
}

/* Activations in f64: their values, within 16 u |x| + 2^-1012, and their largest slopes from above.
 */
double pare_act_f64(pare_act act, double x);
double pare_act_lipschitz(pare_act act);

/* Heads whose values are weighed by a softmax: those, and with one query for all (constq, meanq).
 */
bool pare_attn_has_softmax(pare_attn_kind k);

/* pare_model_size's multiply-adds alone: from shapes, without a look at the weights, which
 * pare_model_size reads to find out what they are stored in. */
uint64_t pare_model_macs(const pare_model *m, size_t tokens, uint64_t edges);

/* An encoder of texts: its outputs are pooled rows, compared by their cosine, and no scores of classes. */
static inline bool pare_model_embeds(const pare_model *m)
{
    return m->head.pool != PARE_POOL_NONE && (m->head.normalize || !pare_has(pare_head_weight(m)));
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The settings of a model, everything that is not a tensor, in one canonical form, and its hash
 * (architecture.c, docs/format.md): the same whatever files it was loaded from. */
PARE_MUST_USE pare_status pare_architecture_text(char **out, pare_arena *a, const pare_model *m,
                                                 pare_err *err);
PARE_MUST_USE pare_status pare_architecture_sha256(char hex[PARE_SHA256_HEX], const pare_model *m,
                                                   pare_err *err);
#endif
