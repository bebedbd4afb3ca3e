"""The options of other toolkits, by the command and the option of nmtkit that correspond to them.

`unknown_options.py` answers from this table, and docs/migrating.md is generated from it. Sources:
fairseq 0.12 (fairseq/options.py, fairseq/dataclass/configs.py), OpenNMT-py 3 (onmt/opts.py), Marian
1.12 (`marian --help`), Sockeye 2 and 3 (sockeye/arguments.py), JoeyNMT 2 (the keys of configs/),
the training and generation arguments of Hugging Face Transformers, sacreBLEU 2 and the converters
of CTranslate2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Row:
    """An option, and its names in other toolkits.

    Attributes:
        here: the option or options, or an argument in upper case; "" = leave the other one out.
        note: what differs, or what happens without the option.
        values: what to write for values of the other option.
        fairseq, opennmt, marian, sockeye, joeynmt, huggingface, sacrebleu, ctranslate2: the names
            of each toolkit as it writes them, separated by spaces.
    """

    here: str
    note: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    fairseq: str = ""
    opennmt: str = ""
    marian: str = ""
    sockeye: str = ""
    joeynmt: str = ""
    huggingface: str = ""
    sacrebleu: str = ""
    ctranslate2: str = ""

    def names(self) -> dict[str, list[str]]:
        """Return the names by toolkit, without toolkits that have none."""
        return {
            title: vars(self)[name].split() for name, title in TOOLKITS.items() if vars(self)[name]
        }


TOOLKITS = {
    "fairseq": "fairseq",
    "opennmt": "OpenNMT-py",
    "marian": "Marian",
    "sockeye": "Sockeye",
    "joeynmt": "JoeyNMT",
    "huggingface": "Hugging Face",
    "sacrebleu": "sacreBLEU",
    "ctranslate2": "CTranslate2",
}
assert [*TOOLKITS] == [one.name for one in fields(Row)][3:]


# fmt: off
_PRECISION = Row("--precision", "float32, bfloat16 or auto", opennmt="-model_dtype",
    sockeye="--dtype")
_HALF = Row("--precision bfloat16", "there is no float16; auto is bfloat16 where it is fast",
    fairseq="--fp16 --bf16 --memory-efficient-fp16 --amp", marian="--fp16", sockeye="--amp",
    joeynmt="fp16", huggingface="--fp16 --bf16")
_DEVICE = Row("--device", "cpu or cuda; CUDA_VISIBLE_DEVICES chooses the GPU", fairseq="--cpu",
    opennmt="-gpu", sockeye="--use-cpu", joeynmt="use_cuda", huggingface="--use_cpu --no_cuda")
_DEVICES = Row("--devices", "a number of GPUs; CUDA_VISIBLE_DEVICES chooses which",
    fairseq="--distributed-world-size", opennmt="-world_size -gpu_ranks", marian="--num-devices",
    sockeye="--device-ids")
_THREADS = Row("--threads", "on a CPU", marian="--cpu-threads", sockeye="--omp-num-threads")
_LANGUAGES = Row("", "the dataset and the model know their languages",
    fairseq="--source-lang --target-lang -s -t",
    huggingface="--source_lang --target_lang")
_QUIET = Row("", "a terminal shows a live display, a file gets plain lines; `2> FILE` keeps them",
    fairseq="--no-progress-bar --log-format --quiet", opennmt="-verbose -log_file",
    marian="--quiet --log", sockeye="--quiet", huggingface="--disable_tqdm")

_PREPROCESS = (
    Row("--train", "a prefix: PREFIX.SOURCE and PREFIX.TARGET, the suffixes of -s and -t",
      fairseq="--trainpref", opennmt="-train_src -train_tgt -src -tgt -data", marian="--train-sets",
      sockeye="--source --target", huggingface="--train_file --dataset_name"),
    Row("--valid", "a prefix, as for --train", fairseq="--validpref",
      opennmt="-valid_src -valid_tgt", marian="--valid-sets",
      sockeye="--validation-source --validation-target -vs -vt", joeynmt="dev",
      huggingface="--validation_file"),
    Row("", "`nmtkit translate` and `nmtkit score` read text; --held-out drops its lines from "
      "training", fairseq="--testpref", joeynmt="test", huggingface="--test_file"),
    Row("--source-lang", "", fairseq="--source-lang",
      huggingface="--source_lang"),
    Row("--target-lang", "", fairseq="--target-lang",
      huggingface="--target_lang"),
    Row("--out", "", fairseq="--destdir", opennmt="-save_data", sockeye="--output -o"),
    Row("--vocab-size", "entries of the vocabulary, which preprocess learns itself",
      fairseq="--nwordssrc --nwordstgt", opennmt="-src_vocab_size -tgt_vocab_size",
      marian="--dim-vocabs", sockeye="--num-words", joeynmt="voc_limit"),
    Row("--min-count", "of words; --segmentation words only",
      fairseq="--thresholdsrc --thresholdtgt",
      opennmt="-src_words_min_frequency -tgt_words_min_frequency", sockeye="--word-min-count",
      joeynmt="voc_min_freq"),
    Row("", "one vocabulary for both languages is the default; --separate-vocabularies learns two",
      fairseq="--joined-dictionary", opennmt="-share_vocab", sockeye="--shared-vocab"),
    Row("--source-vocabulary", "a SentencePiece model, or a list of words; --target-vocabulary for "
      "the target", fairseq="--srcdict", opennmt="-src_vocab", marian="--vocabs",
      sockeye="--source-vocab", joeynmt="voc_file", huggingface="--tokenizer_name"),
    Row("--target-vocabulary", "", fairseq="--tgtdict", opennmt="-tgt_vocab",
      sockeye="--target-vocab"),
    Row("--segmentation", "preprocess learns SentencePiece; translations are plain text again",
      {"sentencepiece": "--segmentation bpe", "subword_nmt": "--segmentation words",
       "fastbpe": "--segmentation words"}, fairseq="--bpe",
      opennmt="-transforms -src_subword_type -tgt_subword_type", joeynmt="level tokenizer_type"),
    Row("--max-length", "in tokens", opennmt="-src_seq_length -tgt_seq_length",
      marian="--max-length", sockeye="--max-seq-len", joeynmt="max_sent_length",
      huggingface="--max_source_length --max_target_length"),
    Row("--sample-lines", "", opennmt="-n_sample"),
    Row("--workers", "", fairseq="--workers", opennmt="-num_threads", sockeye="--max-processes",
      huggingface="--preprocessing_num_workers"),
    Row("", "text keeps its case", opennmt="-lower", joeynmt="lowercase"),
    Row("", "there is one format of datasets", fairseq="--dataset-impl",
      sockeye="--min-num-shards"),
    _QUIET,
)

_TRAIN = (
    Row("DATA", "the folder that `nmtkit preprocess` wrote", opennmt="-data",
      sockeye="--prepared-data -d"),
    Row("--out", "", fairseq="--save-dir", opennmt="-save_model", marian="--model -m",
      sockeye="--output -o", joeynmt="model_dir", huggingface="--output_dir"),
    Row("--preset", "", {
        "transformer": "--preset base", "transformer_wmt_en_de": "--preset base",
        "transformer_vaswani_wmt_en_de_big": "--preset big",
        "transformer_vaswani_wmt_en_fr_big": "--preset big-en-fr",
        "transformer_iwslt_de_en": "--preset base --heads 4 --feed-forward-size 1024",
        "transformer-base": "--preset base", "transformer-big": "--preset big",
        "transformer-base-prenorm": "--preset base --norm pre",
        "transformer-big-prenorm": "--preset big --norm pre"},
      fairseq="--arch -a", marian="--task"),
    Row("", "every model is an encoder and a decoder of the Transformer", marian="--type",
      opennmt="-encoder_type -decoder_type", sockeye="--encoder --decoder"),
    Row("--learning-rate", "the peak; with noam, which is --schedule paper, it is "
      "--learning-rate-scale", fairseq="--lr", opennmt="-learning_rate", joeynmt="learning_rate",
      marian="--learn-rate -l", huggingface="--learning_rate"),
    Row("--learning-rate", "the peak: of inv-sqrt-decay, the value divided by the square root of "
      "the warm-up updates", sockeye="--initial-learning-rate"),
    Row("--schedule", "", {
        "inverse_sqrt": "--schedule inverse-sqrt", "polynomial_decay": "--schedule linear",
        "cosine": "--schedule cosine", "fixed": "--schedule constant", "noam": "--schedule paper",
        "inv-sqrt-decay": "--schedule inverse-sqrt", "linear-decay": "--schedule linear",
        "warmupinversesquareroot": "--schedule inverse-sqrt", "linear": "--schedule linear",
        "constant": "--schedule constant", "constant_with_warmup": "--schedule constant"},
      fairseq="--lr-scheduler", opennmt="-decay_method", sockeye="--learning-rate-scheduler-type",
      joeynmt="scheduling", huggingface="--lr_scheduler_type"),
    Row("--schedule inverse-sqrt", "with --warmup-updates", marian="--lr-decay-inv-sqrt"),
    Row("--warmup-updates", "", fairseq="--warmup-updates", opennmt="-warmup_steps",
      marian="--lr-warmup", sockeye="--learning-rate-warmup", joeynmt="learning_rate_warmup",
      huggingface="--warmup_steps"),
    Row("--warmup-updates", "a number of updates, not a share", huggingface="--warmup_ratio"),
    Row("", "warm-up begins near 0", fairseq="--warmup-init-lr", marian="--lr-warmup-start-rate"),
    Row("--learning-rate-scale", "of --schedule paper", joeynmt="learning_rate_factor"),
    Row("--final-learning-rate", "", fairseq="--end-learning-rate --min-lr",
      joeynmt="learning_rate_min"),
    Row("--decay-updates", "", fairseq="--total-num-update"),
    Row("--max-updates", "", fairseq="--max-update", opennmt="-train_steps",
      marian="--after --after-batches", sockeye="--max-updates", joeynmt="updates",
      huggingface="--max_steps"),
    Row("--max-epochs", "", fairseq="--max-epoch", opennmt="-epochs", marian="--after-epochs -e",
      sockeye="--max-num-epochs", joeynmt="epochs", huggingface="--num_train_epochs"),
    Row("--max-minutes", "minutes: 60 for an hour", fairseq="--stop-time-hours"),
    Row("--max-minutes", "minutes: 1 for 60 seconds", sockeye="--max-seconds"),
    Row("--update-tokens", "the tokens of a whole update, without padding, however many GPUs",
      fairseq="--update-freq", opennmt="-accum_count", marian="--optimizer-delay",
      sockeye="--update-interval", joeynmt="batch_multiplier",
      huggingface="--gradient_accumulation_steps"),
    Row("--max-tokens", "the largest micro-batch, in tokens; --update-tokens sets the batch of an "
      "update", fairseq="--max-tokens --batch-size --max-sentences",
      opennmt="-batch_size -batch_type",
      marian="--mini-batch --mini-batch-words --mini-batch-fit --workspace -w",
      sockeye="--batch-size --batch-type", joeynmt="batch_size batch_type",
      huggingface="--per_device_train_batch_size"),
    Row("", "Adam is the only optimizer; --adam-beta1, --adam-beta2 and --adam-epsilon set it",
      fairseq="--optimizer", opennmt="-optim", marian="--optimizer", sockeye="--optimizer",
      joeynmt="optimizer", huggingface="--optim"),
    Row("--adam-beta1 and --adam-beta2", "", fairseq="--adam-betas", marian="--optimizer-params",
      sockeye="--optimizer-params --optimizer-betas", joeynmt="adam_betas"),
    Row("--adam-epsilon", "", fairseq="--adam-eps", sockeye="--optimizer-epsilon"),
    Row("--weight-decay", "of matrices only", fairseq="--weight-decay", sockeye="--weight-decay",
      joeynmt="weight_decay", huggingface="--weight_decay"),
    Row("--label-smoothing", "", fairseq="--label-smoothing", opennmt="-label_smoothing",
      marian="--label-smoothing", sockeye="--label-smoothing", joeynmt="label_smoothing",
      huggingface="--label_smoothing_factor"),
    Row("", "the loss is cross-entropy with --label-smoothing", fairseq="--criterion",
      marian="--cost-type", sockeye="--loss", joeynmt="loss"),
    Row("--clip-norm", "", fairseq="--clip-norm", opennmt="-max_grad_norm", marian="--clip-norm",
      sockeye="--gradient-clipping-threshold", joeynmt="clip_grad_norm",
      huggingface="--max_grad_norm"),
    Row("--dropout", "", fairseq="--dropout", opennmt="-dropout", marian="--transformer-dropout",
      sockeye="--transformer-dropout-prepost", joeynmt="dropout"),
    Row("--attention-dropout", "", fairseq="--attention-dropout", opennmt="-attention_dropout",
      marian="--transformer-dropout-attention", sockeye="--transformer-dropout-attention"),
    Row("--activation-dropout", "", fairseq="--activation-dropout --relu-dropout",
      marian="--transformer-dropout-ffn", sockeye="--transformer-dropout-act"),
    Row("--subword-sampling", "", fairseq="--sentencepiece-enable-sampling",
      opennmt="-src_subword_nbest -tgt_subword_nbest"),
    Row("--subword-alpha", "with --subword-sampling", fairseq="--sentencepiece-alpha",
      opennmt="-src_subword_alpha -tgt_subword_alpha", marian="--sentencepiece-alphas"),
    Row("--encoder-layers", "", fairseq="--encoder-layers", opennmt="-enc_layers",
      marian="--enc-depth"),
    Row("--decoder-layers", "", fairseq="--decoder-layers", opennmt="-dec_layers",
      marian="--dec-depth"),
    Row("--encoder-layers and --decoder-layers", "", opennmt="-layers", sockeye="--num-layers",
      joeynmt="num_layers"),
    Row("--model-size", "", fairseq="--encoder-embed-dim --decoder-embed-dim",
      opennmt="-hidden_size -rnn_size -word_vec_size", marian="--dim-emb",
      sockeye="--transformer-model-size --num-embed", joeynmt="hidden_size embedding_dim"),
    Row("--feed-forward-size", "", fairseq="--encoder-ffn-embed-dim --decoder-ffn-embed-dim",
      opennmt="-transformer_ff", marian="--transformer-dim-ffn",
      sockeye="--transformer-feed-forward-num-hidden", joeynmt="ff_size"),
    Row("--heads", "", fairseq="--encoder-attention-heads --decoder-attention-heads",
      opennmt="-heads", marian="--transformer-heads", sockeye="--transformer-attention-heads",
      joeynmt="num_heads"),
    Row("--activation", "", fairseq="--activation-fn", opennmt="-pos_ffn_activation_fn",
      marian="--transformer-ffn-activation", sockeye="--transformer-activation-type"),
    Row("--norm", "pre or post", fairseq="--encoder-normalize-before --decoder-normalize-before",
      marian="--transformer-preprocess --transformer-postprocess",
      sockeye="--transformer-preprocess --transformer-postprocess", joeynmt="layer_norm"),
    Row("--positions", "", fairseq="--encoder-learned-pos --decoder-learned-pos",
      opennmt="-position_encoding -position_encoding_type", marian="--transformer-train-positions",
      sockeye="--transformer-positional-embedding-type"),
    Row("--max-positions", "of learned positions; others have no limit",
      fairseq="--max-source-positions --max-target-positions"),
    Row("--tie-embeddings", "the default with one vocabulary",
      fairseq="--share-all-embeddings --share-decoder-input-output-embed",
      opennmt="-share_embeddings -share_decoder_embeddings",
      marian="--tied-embeddings-all --tied-embeddings",
      sockeye="--weight-tying-type --weight-tying", joeynmt="tied_embeddings tied_softmax"),
    Row("--save-every", "", fairseq="--save-interval-updates", opennmt="-save_checkpoint_steps",
      marian="--save-freq", sockeye="--checkpoint-interval --checkpoint-frequency",
      huggingface="--save_steps"),
    Row("--every-epoch", "", fairseq="--save-interval", huggingface="--save_strategy"),
    Row("--keep", "", fairseq="--keep-interval-updates --keep-last-epochs",
      opennmt="-keep_checkpoint", sockeye="--keep-last-params", joeynmt="keep_last_ckpts",
      huggingface="--save_total_limit"),
    Row("--keep-best", "", fairseq="--keep-best-checkpoints", marian="--keep-best",
      sockeye="--cache-last-best-params", joeynmt="keep_best_ckpts"),
    Row("--validate-every", "", fairseq="--validate-interval-updates --validate-interval",
      opennmt="-valid_steps", marian="--valid-freq", joeynmt="validation_freq",
      huggingface="--eval_steps --eval_strategy --evaluation_strategy"),
    Row("--validate-metrics", "", fairseq="--eval-bleu", opennmt="-valid_metrics",
      marian="--valid-metrics", sockeye="--decode-and-evaluate", joeynmt="eval_metric eval_metrics",
      huggingface="--predict_with_generate"),
    Row("--validate-samples", "", fairseq="--eval-bleu-print-samples", joeynmt="print_valid_sents"),
    Row("--best-metric", "its direction is known", joeynmt="early_stopping_metric",
      fairseq="--best-checkpoint-metric --maximize-best-checkpoint-metric",
      sockeye="--optimized-metric", huggingface="--metric_for_best_model --greater_is_better"),
    Row("--patience", "in validations", fairseq="--patience", opennmt="-early_stopping",
      marian="--early-stopping", sockeye="--max-num-checkpoint-not-improved"),
    Row("--log-every", "", fairseq="--log-interval", opennmt="-report_every", marian="--disp-freq",
      joeynmt="logging_freq", huggingface="--logging_steps"),
    Row("--tensorboard", "", fairseq="--tensorboard-logdir",
      opennmt="-tensorboard -tensorboard_log_dir", huggingface="--report_to --logging_dir"),
    Row("--from", "begins a run with the weights of a model", opennmt="-train_from",
      fairseq="--finetune-from-model --restore-file", marian="--pretrained-model",
      sockeye="--params -p", joeynmt="load_model", huggingface="--model_name_or_path"),
    Row("", "the same command resumes a run; another --out begins a new one",
      fairseq="--reset-optimizer --reset-dataloader --reset-lr-scheduler --reset-meters",
      opennmt="-reset_optim", marian="--no-reload --overwrite", sockeye="--overwrite-output",
      joeynmt="overwrite", huggingface="--resume_from_checkpoint --overwrite_output_dir"),
    Row("--ema-decay", "such as 0.9999", fairseq="--store-ema"),
    Row("--ema-decay", "1 minus that value: 0.9999 for 0.0001", opennmt="-average_decay",
      marian="--exponential-smoothing"),
    Row("--freeze", "", opennmt="-freeze_encoder -freeze_decoder -freeze_word_vecs_enc "
      "-freeze_word_vecs_dec", marian="--embedding-fix-src --embedding-fix-trg",
      sockeye="--fixed-param-names", joeynmt="freeze"),
    Row("--activation-checkpointing", "", fairseq="--checkpoint-activations",
      opennmt="-use_ckpting", marian="--gradient-checkpointing",
      huggingface="--gradient_checkpointing"),
    Row("--beam", "of validation", fairseq="--eval-bleu-args", marian="--beam-size -b",
      huggingface="--num_beams"),
    _PRECISION, _HALF, _DEVICE, _DEVICES, _THREADS,
    Row("", "--devices starts a process per GPU; torchrun starts them on several machines",
      fairseq="--ddp-backend --distributed-init-method --distributed-port",
      opennmt="-master_ip -master_port", sockeye="--dist --horovod",
      huggingface="--local_rank --deepspeed"),
    Row("--read-workers", "", fairseq="--num-workers", opennmt="-num_workers",
      huggingface="--dataloader_num_workers"),
    Row("--seed", "", fairseq="--seed", opennmt="-seed", marian="--seed", sockeye="--seed",
      joeynmt="random_seed", huggingface="--seed"),
    Row("", "training trains and validates; there is no other task", huggingface="--do_train "
      "--do_eval --do_predict --task_name"),
    _LANGUAGES, _QUIET,
)

_AVERAGE = (
    Row("RUN_OR_CHECKPOINTS", "", fairseq="--inputs", opennmt="-models", marian="--models -m"),
    Row("--last", "", fairseq="--num-update-checkpoints --num-epoch-checkpoints", sockeye="-n"),
    Row("--best", "", fairseq="--num-best-checkpoints", sockeye="--strategy"),
    Row("--out", "a new folder", fairseq="--output", opennmt="-output", marian="--output -o",
      sockeye="--output -o"),
)

_TRANSLATE = (
    Row("MODEL", "several models are an ensemble", fairseq="--path", opennmt="-model",
      marian="--models -m", sockeye="--models -m", joeynmt="ckpt",
      huggingface="--model_name_or_path"),
    Row("--input", "with --output; or `< FILE`", opennmt="-src", marian="--input -i",
      sockeye="--input -i"),
    Row("--output", "with --input; or `> FILE`", opennmt="-output", marian="--output -o",
      sockeye="--output -o", fairseq="--results-path", joeynmt="output_path"),
    Row("", "`nmtkit score` compares translations with references", opennmt="-tgt",
      fairseq="--gen-subset --scoring --sacrebleu"),
    Row("--beam", "", fairseq="--beam", opennmt="-beam_size", marian="--beam-size -b",
      sockeye="--beam-size -b", joeynmt="beam_size", huggingface="--num_beams"),
    Row("--length-penalty", "GNMT's; --length-penalty-form power is length to this power",
      fairseq="--lenpen", opennmt="-alpha", marian="--normalize -n",
      sockeye="--length-penalty-alpha", joeynmt="alpha beam_alpha", huggingface="--length_penalty"),
    Row("--length-penalty-form none", "", fairseq="--unnormalized"),
    Row("--max-length-ratio", "of the source length, with --max-length-offset",
      fairseq="--max-len-a", opennmt="-max_length_ratio", marian="--max-length-factor",
      sockeye="--max-output-length-num-stds"),
    Row("--max-length-offset", "", fairseq="--max-len-b"),
    Row("--max-output-length", "", opennmt="-max_length", sockeye="--max-output-length",
      joeynmt="max_output_length", huggingface="--max_new_tokens --max_length"),
    Row("--min-length-offset", "", fairseq="--min-len", opennmt="-min_length",
      joeynmt="min_output_length", huggingface="--min_length"),
    Row("--no-repeat-ngram", "", fairseq="--no-repeat-ngram-size", opennmt="-block_ngram_repeat",
      joeynmt="no_repeat_ngram_size", huggingface="--no_repeat_ngram_size"),
    Row("--n-best", "with --output-format moses or json", fairseq="--nbest", opennmt="-n_best",
      marian="--n-best", sockeye="--nbest-size", joeynmt="n_best",
      huggingface="--num_return_sequences"),
    Row("--sample", "", fairseq="--sampling", marian="--output-sampling", sockeye="--sample",
      huggingface="--do_sample"),
    Row("--top-k", "with --sample", fairseq="--sampling-topk", opennmt="-random_sampling_topk"),
    Row("--top-p", "with --sample", fairseq="--sampling-topp", opennmt="-random_sampling_topp"),
    Row("--temperature", "with --sample", fairseq="--temperature", opennmt="-random_sampling_temp"),
    Row("--batch-size", "", fairseq="--batch-size --max-sentences", opennmt="-batch_size",
      marian="--mini-batch", sockeye="--batch-size", joeynmt="batch_size",
      huggingface="--per_device_eval_batch_size"),
    Row("--max-tokens", "", fairseq="--max-tokens", marian="--mini-batch-words"),
    Row("--chunk-lines", "", fairseq="--buffer-size", marian="--maxi-batch",
      sockeye="--chunk-size"),
    Row("--shard", "such as 1/8", fairseq="--num-shards --shard-id"),
    Row("--max-source-length", "", sockeye="--max-input-length --max-input-len",
      huggingface="--max_source_length"),
    Row("--alignments", "", fairseq="--print-alignment", opennmt="-report_align",
      marian="--alignment"),
    Row("--token-scores", "with --output-format json", marian="--word-scores",
      joeynmt="return_prob"),
    Row("--scores", "", opennmt="-with_score"),
    Row("--input-format", "", sockeye="--json-input"),
    Row("--output-format", "", sockeye="--output-type"),
    Row("--ban-unknown", "", opennmt="-ban_unk_token", fairseq="--unkpen"),
    Row("", "SentencePiece writes every character, by byte fallback; --ban-unknown is for "
      "vocabularies of words", fairseq="--replace-unk", opennmt="-replace_unk -phrase_table",
      marian="--allow-unk"),
    Row("", "translations are plain text already",
      fairseq="--remove-bpe --post-process", marian="--no-spm-decode"),
    Row("", "the model has its vocabularies and its segmentation", marian="--vocabs -v",
      fairseq="--bpe --tokenizer --bpe-codes --sentencepiece-model"),
    Row("--shortlist", "a folder of `nmtkit shortlist`", marian="--shortlist",
      sockeye="--restrict-lexicon"),
    _PRECISION, _HALF, _DEVICE, _DEVICES, _THREADS, _LANGUAGES, _QUIET,
)

_SCORE = (
    Row("SYSTEM", "a file of translations; or `< FILE`", fairseq="--sys", sockeye="--target",
      sacrebleu="--input -i"),
    Row("--reference", "", fairseq="--ref", sacrebleu="--refs"),
    Row("--model", "with --source", fairseq="--path --score-reference", opennmt="-model"),
    Row("--source", "with --model", opennmt="-src", sockeye="--source"),
    Row("--metric", "", fairseq="--scoring", sacrebleu="--metrics -m"),
    Row("--tokenize", "", sacrebleu="--tokenize -tok"),
    Row("--lowercase", "", fairseq="--ignore-case", sacrebleu="-lc"),
    Row("--test-set", "with --language-pair", sacrebleu="--test-set -t"),
    Row("--language-pair", "", sacrebleu="--language-pair -l"),
    Row("--sentence-level", "", sacrebleu="-sl", fairseq="--sentence-bleu"),
    Row("--resamples", "with --paired-bs or --confidence",
      sacrebleu="--paired-bs-n --confidence-n"),
    Row("--trials", "with --paired-ar", sacrebleu="--paired-ar-n"),
    Row("--json", "", sacrebleu="--format -f --score-only -b"),
    Row("", "scores are sacreBLEU's", fairseq="--sacrebleu"),
    _PRECISION, _HALF, _DEVICE, _THREADS, _QUIET,
)

_EXPORT = (
    Row("OUT", "", ctranslate2="--output_dir"),
    Row("MODEL", "", ctranslate2="--model --model_path --model_dir"),
    Row("--overwrite", "", ctranslate2="--force"),
    Row("", "CTranslate2 converts the weights when it loads them, by compute_type",
      ctranslate2="--quantization"),
)
# fmt: on

COUNTERPARTS: dict[str, tuple[Row, ...]] = {
    "preprocess": _PREPROCESS,
    "train": _TRAIN,
    "average-checkpoints": _AVERAGE,
    "translate": _TRANSLATE,
    "score": _SCORE,
    "export": _EXPORT,
}
"""The counterparts of each command's options and arguments."""
