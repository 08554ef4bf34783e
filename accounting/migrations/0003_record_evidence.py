from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounting", "0002_waiting_index")]

    operations = [
        migrations.AddField("usagerecord", "wckey", models.CharField(max_length=255, default=""), preserve_default=False),
        migrations.AddField("usagerecord", "environment", models.CharField(max_length=255, default=""), preserve_default=False),
        migrations.AddField("usagerecord", "restart_count", models.IntegerField(null=True)),
    ]
