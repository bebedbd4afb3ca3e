from nmtkit.config.rerank import FeatureSpec, feature_specs


def test_features_are_named_in_a_list() -> None:
    assert feature_specs("model, forced:a:b/ ,mbr:") == [
        FeatureSpec("model", "model", ""),
        FeatureSpec("forced:a:b/", "forced", "a:b/"),
        FeatureSpec("mbr:", "mbr", ""),
    ]
