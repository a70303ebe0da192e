"""What several folders of tests share: sources of kernels, stand-ins for hosts and models, editors without a screen."""
